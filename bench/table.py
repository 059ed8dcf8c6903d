"""The table that bench/run.py prints: cells of a row, sentences below it, and the same as Markdown.

A row is one net on one number of threads; its keys are what run.py measured ("us", "ratio", ...).
"""
import math
import statistics

import board
import peers

HEADS = ["net", "threads", "sinter us", *(f"{p} us" for p in peers.KINDS), "best peer / ours", "one thread / this", "difference",
         "arena + weights MB", "with --small-weights", "least peer's MB", "GFLOP/s", "A53 / A72 / A76", "best board peer / ours"]
KERNEL_HEADS = ["kernel", "layers", "ms", "GFLOP/s", "of the peak", "of the fastest layer"]


def geometric_mean(ratios):
    return math.exp(statistics.fmean(math.log(x) for x in ratios))


def mb(n):
    return f"{n / 1e6:.1f}"


def board_cells(row):
    """Ours on CORES, Mcycles or millions of instructions, and the best peer's over them."""
    if "board" not in row:
        return ["-", "-"]
    ours = " / ".join(f"{m:.{1 if m >= 10 else 2}f}" for m in row["board"])
    ratios = board_ratios(row)
    return [ours + ("" if "board_peers" in row else " M instructions"),
            " / ".join(f"{r:.2f}" for r in ratios) if ratios else "-"]


def board_ratios(row):
    known = row.get("board_peers")
    return [min(times) / ours for times, ours in zip(zip(*known.values()), row["board"])] if known else []


def cells_of(row):
    """A net's line: times in microseconds, the best peer's over ours, memory, speed, figures of boards."""
    cells = [row["model"], str(row["threads"])]
    cells += [f"{row['us'][p][0]:.0f}" if p in row["us"] else "-" for p in ("sinter", *peers.KINDS)]
    cells += [f"{row['ratio']:.2f}", f"{row['gain']:.2f}" if "gain" in row else "-", f"{row['difference']['sinter']:.0e}"]
    cells += [f"{mb(row['arena_bytes'])} + {mb(row['weights_bytes'])}"]
    cells += [f"{mb(row['small']['bytes'])}, {row['small']['us']:.0f} us" if "small" in row else "-"]
    cells += [mb(min(row["resident_bytes"].values()))]
    cells += [f"{row['flops'] / row['us']['sinter'][0] / 1e3:.0f}" if row["flops"] else "-"]
    return cells + board_cells(row)


def summary_of(rows):
    """Sentences about the rows of one number of threads: geometric means, and why a peer is missing."""
    threads = rows[0]["threads"]
    ratios = [r["ratio"] for r in rows]
    lines = [f"{threads} thread{'s' if threads > 1 else ''}: the best peer takes {geometric_mean(ratios):.2f} times our time as "
             f"geometric mean over {len(rows)} nets, least {min(ratios):.2f}."]
    for peer in peers.KINDS:
        ratios = [r["us"][peer][0] / r["us"]["sinter"][0] for r in rows if peer in r["us"]]
        if ratios:
            lines.append(f"{peer}: {geometric_mean(ratios):.2f} times our time over {len(ratios)} nets, least {min(ratios):.2f}.")
        absent = [f"{r['model']} ({r['absent'][peer]})" for r in rows if peer in r["absent"]]
        if absent:
            lines.append(f"{peer} is missing for " + "; ".join(absent) + ".")
    gains = [(r["gain"], r["model"]) for r in rows if "gain" in r and r["flops"] > 1e9]
    if gains:
        lines.append(f"One thread takes {geometric_mean([g for g, _ in gains]):.2f} times as long as {threads} for nets of more than "
                     f"1 GFLOP, least {min(gains)[0]:.2f} ({min(gains)[1]}).")
    return lines


def summary(rows):
    lines = []
    for threads in sorted({r["threads"] for r in rows}):
        lines += summary_of([r for r in rows if r["threads"] == threads])
    on_boards = [board_ratios(r) for r in rows if board_ratios(r)]
    if on_boards:
        means = " / ".join(f"{geometric_mean(ratios):.2f}" for ratios in zip(*on_boards))
        lines.append(f"{' / '.join(board.CORES)}: the best peer takes {means} times our modelled cycles over {len(on_boards)} nets.")
    return lines


def kernels_of(rows, peak):
    """Cells of a line for each kernel, over the layers of all nets (what `sinter bench` says of them), by their share."""
    kernels = {}
    for layer in (layer for r in rows for layer in r.get("layers", [])):
        kernels.setdefault(layer["kernel"], []).append(layer)
    lines = []
    for kernel, layers in sorted(kernels.items(), key=lambda k: -sum(l["us"] for l in k[1])):
        us, flops = sum(l["us"] for l in layers), sum(l["flops"] for l in layers)
        rate, best = flops / us / 1e3, max(l["flops"] / l["us"] for l in layers) / 1e3
        lines.append([kernel, str(len(layers)), f"{us / 1e3:.2f}", f"{rate:.0f}", f"{rate / peak:.0%}", f"{best / peak:.0%}"])
    return lines


def markdown(heads, lines):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads), *lines]) + "\n"
