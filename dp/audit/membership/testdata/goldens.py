# Writes what the tests of dp/audit/forest, dp/audit/kmeans and dp/audit/membership hold ours to, by
# scikit-learn 1.9.1 and scipy 1.17.1. From dp/audit/membership/testdata: python3 goldens.py
import json
import numpy as np
from scipy.stats import mannwhitneyu
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score, roc_curve
from sklearn.tree import DecisionTreeClassifier

rng = np.random.default_rng(7)
grid = lambda x: np.round(x * 1024) / 1024  # exact as float32, which scikit-learn's trees take


def dump(name, value):
    with open(name, "w") as f:
        json.dump(value, f, separators=(",", ":"))
        f.write("\n")


# Classes that a curved border parts, with a tenth of the labels wrong.
def curved(n):
    x = grid(rng.normal(size=(n, 4)))
    y = (x[:, 0] * x[:, 1] + 0.5 * x[:, 2] > 0) ^ (rng.random(n) < 0.1)
    return x, y


x, y = curved(240)
test, truth = curved(300)
tree = DecisionTreeClassifier(max_depth=3, min_samples_leaf=5, random_state=0).fit(x, y)
aucs = [roc_auc_score(truth, RandomForestClassifier(random_state=s).fit(x, y).predict_proba(test)[:, 1]) for s in range(20)]
dump("../../forest/testdata/forest.json", {
    "rows": x.tolist(), "positive": y.tolist(), "test": test.tolist(), "truth": truth.tolist(),
    "tree": tree.predict_proba(test)[:, 1].tolist(), "auc_mean": float(np.mean(aucs)), "auc_deviation": float(np.std(aucs, ddof=1))})

p = np.concatenate([rng.normal(0, 1, (40, 2)), rng.normal(1.5, 1, (30, 2))])
one = KMeans(n_clusters=2, init=p[:2], n_init=1, algorithm="lloyd", tol=0).fit(p)
many = KMeans(n_clusters=2, n_init=50, random_state=0, tol=0).fit(p)
dump("../../kmeans/testdata/kmeans.json", {"points": p.tolist(), "centres": one.cluster_centers_.tolist(), "of": one.labels_.tolist(),
    "inertia": float(one.inertia_), "best": float(many.inertia_)})

cases = []
for n, shift, digits in [(60, 0.8, 3), (400, 0.3, 1), (250, 0, 0), (300, 3, 4), (40, 1, 0)]:
    member = rng.random(n) < 0.4
    score = np.round(rng.normal(size=n) + shift * member, digits)
    weight = rng.integers(0, 4, n)
    fpr, tpr, _ = roc_curve(member, score, drop_intermediate=False)
    wfpr, wtpr, _ = roc_curve(member, score, drop_intermediate=False, sample_weight=weight)
    cases.append({"member": member.tolist(), "score": score.tolist(), "weight": weight.tolist(),
        "auc": float(roc_auc_score(member, score)), "tpr": float(tpr[fpr <= 0.01].max()),
        "weighted_auc": float(roc_auc_score(member, score, sample_weight=weight)), "weighted_tpr": float(wtpr[wfpr <= 0.01].max()),
        "p": float(mannwhitneyu(score[member], score[~member], alternative="greater", method="asymptotic").pvalue)})
dump("curves.json", cases)
