#!/usr/bin/env python3
"""How far the times that `sinter inspect` models are from a simulator's: a table of Mcycles for each model and core.

    python bench/modelled.py --armsim ARMSIM [--sinter SINTER] [--cores cortex-a53,cortex-a72] MODEL.onnx...

ARMSIM: see board.py. Inputs must be static.
"""
import argparse
import json
import os
import subprocess
import tempfile

import board


def modelled(sinter, model, core, folder):
    """Millions of cycles that inspect models for the whole net."""
    path = f"{folder}/inspect.json"
    subprocess.run([sinter, "inspect", model, "--target", core, "--json", path], check=True, stdout=subprocess.DEVNULL)
    return sum(layer["modelled"]["cycles"] for layer in json.load(open(path))["layers"]) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--armsim", required=True)
    parser.add_argument("--sinter", default="build/host/sinter")
    parser.add_argument("--cores", default=",".join(board.CORES))
    parser.add_argument("models", nargs="+")
    a = parser.parse_args()
    print("| net | core | modelled | simulated | ratio |\n|---|---|---|---|---|")
    for model in a.models:
        for core in a.cores.split(","):
            with tempfile.TemporaryDirectory() as folder:
                m = modelled(a.sinter, model, core, folder)
                s = board.cycles(a.armsim, [board.build(a.sinter, model, core, folder)], core)
            print(f"| {os.path.basename(model)[:-5]} | {core} | {m:.2f} | {s:.2f} | {m / s:.2f} |", flush=True)


if __name__ == "__main__":
    main()
