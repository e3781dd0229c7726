"""Draws the series of a soak as one SVG: a panel each, the warm-up in grey, faults as ticks."""

import html

from verdicts import telling, thinned

COLUMNS = 3
WIDTH, HEIGHT = 300, 110        # of a panel
LEFT, TOP, GAP_X, GAP_Y = 12, 30, 24, 46
MOST_POINTS = 150
LINE = {True: "#1a7f37", False: "#cf222e", None: "#57606a"}  # flat, not flat, not judged


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def panel(name, points, found, warm, seconds, ticks):
    flat = found["flat"] if found else None
    top = 1.15 * max(value for _, value in points) or 1

    def place(second, value):
        return f"{WIDTH * second / seconds:.1f},{HEIGHT - HEIGHT * max(value, 0) / top:.1f}"

    line = " ".join(place(*point) for point in thinned(points, MOST_POINTS))
    says = {True: "flat", False: "NOT FLAT", None: "kept, or not judged"}[flat]
    if found and "growth" in found:
        says += f", {found['growth']:+.3g} of {found['bound']:.3g}"
    marks = "".join(f"M{WIDTH * at / seconds:.1f} {HEIGHT}v-5" for at in ticks)
    return (f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#f6f8fa"/>'
            f'<rect width="{WIDTH * min(warm, seconds) / seconds:.1f}" height="{HEIGHT}" '
            'fill="#e3e6ea"/>'
            f'<path d="{marks}" stroke="#bf8700"/>'
            f'<polyline points="{line}" fill="none" stroke="{LINE[flat]}" stroke-width="1.3"/>'
            f'<text y="-6" font-weight="bold">{html.escape(name)}</text>'
            f'<text x="4" y="12" fill="#57606a">{number(top)}</text>'
            f'<text x="{WIDTH}" y="-6" text-anchor="end" fill="{LINE[flat]}">{says}</text>')


def drawn(title, series, verdicts, warm, faults):
    """The text of an SVG. `faults`: (second, name)."""
    seconds = max(points[-1][0] for points in series.values())
    ticks = [at for at, _ in faults]
    # Those that are judged first.
    names = sorted((name for name, points in series.items() if telling(name, points)),
                   key=lambda name: name not in verdicts)
    rows = -(-len(names) // COLUMNS)
    width = 2 * LEFT + COLUMNS * WIDTH + (COLUMNS - 1) * GAP_X
    height = TOP + rows * (HEIGHT + GAP_Y) + 12
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             'font-family="sans-serif" font-size="10">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{LEFT}" y="18" font-size="13">{html.escape(title)}</text>']
    for place, name in enumerate(names):
        x = LEFT + place % COLUMNS * (WIDTH + GAP_X)
        y = TOP + 24 + place // COLUMNS * (HEIGHT + GAP_Y)
        parts.append(f'<g transform="translate({x} {y})">')
        parts.append(panel(name, series[name], verdicts.get(name), warm, seconds, ticks))
        parts.append("</g>")
    return "\n".join(parts + ["</svg>"]) + "\n"
