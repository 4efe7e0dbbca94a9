"""Makes wilson.json: intervals of Wilson at 95 %, by scipy (1.17.1)."""
import json
from scipy.stats import binomtest

cases = [(0, 128), (97, 128), (128, 128), (1, 3), (64, 128), (999, 1000), (5000, 10000)]
rows = []
for hits, of in cases:
    ci = binomtest(hits, of).proportion_ci(0.95, method="wilson")
    rows.append([hits, of, ci.low, ci.high])
print(json.dumps(rows))
