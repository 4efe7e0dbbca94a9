"""Times float32 matrix products in numpy on one OpenBLAS thread.

    OPENBLAS_NUM_THREADS=1 python gemm.py M,K,N [M,K,N ...]
"""

import json
import sys
import time

import numpy as np

for arg in sys.argv[1:]:
    m, k, n = (int(v) for v in arg.split(","))
    a, b = np.random.rand(m, k).astype(np.float32), np.random.rand(k, n).astype(np.float32)
    c = a @ b
    times, cpu = [], []
    for _ in range(50):
        t0, c0 = time.perf_counter(), time.process_time()
        np.matmul(a, b, out=c)
        times.append(1e3 * (time.perf_counter() - t0))
        cpu.append(1e3 * (time.process_time() - c0))
    times.sort()
    print(json.dumps({"name": f"gemm-{m}x{k}x{n}", "engine": f"numpy {np.__version__}", "steps": 50,
                      "min_ms": times[0], "cpu_ms": min(cpu), "median_ms": times[25], "gflops": 2e-6 * m * k * n / min(cpu)}))
