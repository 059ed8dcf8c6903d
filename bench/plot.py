#!/usr/bin/env python3
"""A picture of a table that bench/run.py wrote with --json: each runtime's time over sinter's, a group of bars a net.

    python bench/plot.py TABLE.json PLOT.svg

Needs matplotlib. The line at 1 is sinter's own time; bars above it are slower.
"""
import json
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "sinter"  # the same table gives the same file
import matplotlib.pyplot as plt

rows = json.load(open(sys.argv[1]))
runtimes = sorted({name for row in rows for name in row["us"]} - {"sinter"})
figure, axes = plt.subplots(figsize=(max(6, len(rows) * 0.9), 4.5))
for k, name in enumerate(runtimes):
    known = [(i, row["us"][name][0] / row["us"]["sinter"][0]) for i, row in enumerate(rows) if name in row["us"]]
    width = 0.8 / len(runtimes)
    axes.bar([i - 0.4 + width * (k + 0.5) for i, _ in known], [ratio for _, ratio in known], width, label=name)
axes.axhline(1, color="black", linewidth=1)
axes.set_yscale("log")
axes.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
axes.set_ylabel("time / sinter's time")
axes.set_xticks(range(len(rows)), [row["model"] + (f", {row['threads']} threads" if row["threads"] > 1 else "") for row in rows], rotation=60, ha="right")
axes.legend()
figure.tight_layout()
figure.savefig(sys.argv[2], metadata={"Date": None})
