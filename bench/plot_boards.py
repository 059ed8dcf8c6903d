#!/usr/bin/env python3
"""The picture of README.md: what nets cost on a board's core, in the types that boards compute in.

    python bench/plot_boards.py bench/boards.json docs/boards.svg

boards.json holds the figures of docs/performance.md, which says how each was measured (bench/board.py under the
simulator of cores). Needs matplotlib.
"""
import json
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "sinter"  # the same figures give the same file
matplotlib.rcParams["svg.fonttype"] = "none"
import matplotlib.pyplot as plt

COLOURS = {"ONNX Runtime": "#b8b8b8", "ncnn": "#7d8da1", "sinter": "#d9622b"}


def bars(axes, types, runtimes):
    """One net: a group of bars a type, each with its figure; what a runtime doesn't have is left out."""
    at, ticks = 0, []
    for name, figures in types.items():
        known = [r for r in runtimes if r in figures]
        for k, runtime in enumerate(known):
            y = at + k * 0.8
            axes.barh(y, figures[runtime], 0.72, color=COLOURS[runtime])
            axes.text(figures[runtime], y, f" {figures[runtime]:g}", va="center", fontsize=8)
        ticks.append((at + (len(known) - 1) * 0.4, name))
        at += len(known) * 0.8 + 0.5
    axes.set_yticks([y for y, _ in ticks], [name for _, name in ticks])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.18 * max(v for figures in types.values() for v in figures.values()))
    axes.tick_params(left=False, bottom=False, labelbottom=False)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.spines["left"].set_visible(True)


def main():
    table = json.load(open(sys.argv[1]))
    nets = table["nets"]
    figure, rows = plt.subplots(1, len(nets), figsize=(2.9 * len(nets), 2.9))
    for axes, (net, types) in zip(rows, nets.items()):
        bars(axes, types, table["runtimes"])
        axes.set_title(net, fontsize=10)
    handles = [plt.Rectangle((0, 0), 1, 1, color=COLOURS[r]) for r in table["runtimes"]]
    figure.legend(handles, table["runtimes"], loc="lower center", ncol=len(handles), frameon=False, fontsize=9)
    figure.suptitle(f"{table['core']}: {table['unit']}, less is faster", fontsize=10)
    figure.patch.set_facecolor("white")
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(sys.argv[2], metadata={"Date": None})


if __name__ == "__main__":
    main()
