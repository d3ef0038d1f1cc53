"""The pictures of the docs: the page of fmpl bench --html in a browser, fmpl top in a terminal.

Each line makes its picture anew, of a run that really is, and looks at it. With FMPL_TEST_BLESS=1 it writes it into docs/; without, it looks
whether the one that is there shows the same, as far as two runs can.
"""

import signal
import xml.etree.ElementTree
import xml.sax.saxutils

PICTURES_MOST = 150_000  # bytes


def picture_of_docs(name, page, made, alike):
    """What there is to say of docs/NAME, which a page shows; and whether it is as it should be. `made`: its bytes, made just now; `alike`:
    whether another such file shows the same."""
    file = ROOT / "docs" / name
    if "FMPL_TEST_BLESS" in os.environ:
        file.write_bytes(made)
    kept = file.read_bytes() if file.exists() else b""
    wrong = [
        text
        for text, is_so in (
            ("is not there", not kept),
            (f"has {len(kept)} bytes", len(kept) > PICTURES_MOST),
            ("shows something else; FMPL_TEST_BLESS=1 writes it", bool(kept) and not alike(kept)),
            (f"is not on {page}", f"]({name})" not in (ROOT / "docs" / page).read_text()),
        )
        if is_so
    ]
    return f"docs/{name} {' and '.join(wrong) or f'of {len(kept) >> 10} KB'}", not wrong


# ---- the page of fmpl bench --html

def pixels(data):
    """The colours of a picture, (red, green, blue): how often each is there. PNG of 8 bits, as browsers write it."""
    at, packed = 8, b""
    while at < len(data):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        chunk = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, depth, step = int.from_bytes(chunk[:4], "big"), chunk[8], {2: 3, 6: 4}[chunk[9]]
            assert depth == 8
        packed += chunk if kind == b"IDAT" else b""
        at += length + 12
    lines, size, above, colours = zlib.decompress(packed), width * step, bytes(width * step), collections.Counter()
    for start in range(0, len(lines), size + 1):
        how, line = lines[start], bytearray(lines[start + 1 : start + 1 + size])
        for i in range(size if how else 0):
            left, up, corner = (line[i - step], above[i], above[i - step]) if i >= step else (0, above[i], 0)
            guess = left + up - corner
            nearest = min((left, up, corner), key=lambda v: abs(guess - v))
            line[i] = (line[i] + (0, left, up, (left + up) // 2, nearest)[how]) & 255
        colours.update(zip(line[0::step], line[1::step], line[2::step]))
        above = line
    return colours


def same_size(one, other):
    """Are both PNGs of the same width and height?"""
    return one[:8] == other[:8] and one[12:24] == other[12:24]


@line("users", "fmpl bench --html, opened in Chromium: text, and lines in the colour of FMPL; docs/bench-page.png shows it", "all")
def _():
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not browser:
        raise Missing("Chromium is not installed")
    # For the docs as anybody would run it; else as short as can be.
    short = [] if "FMPL_TEST_BLESS" in os.environ else ["--rounds", "1", "--blocks", "2", "--iterations", "50"]
    with tempfile.TemporaryDirectory() as place:
        picture = pathlib.Path(place, "page.png")
        # By its name alone, which the page shows.
        command = ["fmpl", "bench", "pingpong", "--sizes", "8,64,512,4k,32k,256k", *short, "--html", "page.html"]
        subprocess.run(command, executable=bench.fmpl, cwd=place, check=True, capture_output=True)
        shot = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={place}/profile", "--window-size=800,1200"]
        subprocess.run([browser, *shot, f"--screenshot={picture}", f"file://{place}/page.html"], check=True, capture_output=True, timeout=120)
        made = picture.read_bytes()
    colours = pixels(made)
    text, fmpl, white = (colours[c] for c in ((0x22, 0x22, 0x22), (0, 90, 181), (255, 255, 255)))
    shown = f"{len(colours)} colours, {text} points of text, {fmpl} of lines, {white / colours.total() * 100:.0f} % white"
    kept, well = picture_of_docs("bench-page.png", "measuring.md", made, lambda kept: same_size(kept, made))
    return f"{shown}; {kept}", text > 500 and fmpl > 200 and white < 0.99 * colours.total() and well


# ---- fmpl top

def terminal(lines):
    """A picture of lines of text as a terminal shows them, as SVG."""
    wide, high, edge = 7.8, 18, 12
    size = f"{2 * edge + wide * max(map(len, lines)):.0f}", f"{2 * edge + high * len(lines)}"
    shown = "".join(
        # Each as long as its letters are many, whatever font there is.
        f'<text x="{edge}" y="{edge + high * k + 13}" textLength="{wide * len(text):.1f}">{xml.sax.saxutils.escape(text)}</text>\n'
        for k, text in enumerate(lines)
        if text
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" height="{size[1]}">\n'
        f'<rect width="{size[0]}" height="{size[1]}" rx="6" fill="#1e1e1e"/>\n'
        f'<g font-family="monospace" font-size="13" fill="#d8d8d8" xml:space="preserve" style="white-space: pre">\n{shown}</g>\n</svg>\n'
    ).encode()


def lines_shown(picture):
    """The lines of such a picture; none: it is none."""
    try:
        root = xml.etree.ElementTree.fromstring(picture)
    except xml.etree.ElementTree.ParseError:
        return []
    return [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]


def looks_at(job, looks=3):
    """What fmpl top says of a job, by its last look; once the job has begun."""
    for _ in range(100):
        done = subprocess.run([bench.fmpl, "top", "-d", "1", "-n", str(looks), str(job.pid)], capture_output=True, text=True)
        if done.returncode == 0 and "in init" not in done.stdout:
            lines = done.stdout.splitlines()
            return lines[len(lines) // looks * (looks - 1) :]
        time.sleep(0.1)
    raise Missing(done.stderr.strip()[-300:] or done.stdout)


@line("users", "fmpl top of four ranks that work, and with one of them stopped: who sends, who waits for whom; docs/top.svg", "all")
def _():
    with tempfile.TemporaryDirectory() as place:
        program = pathlib.Path(place, "halo3d")
        subprocess.run([bench.fmpl, "install", "--prefix", place], check=True, capture_output=True)
        built = [f"{place}/bin/fmplcc", "-O2", ROOT / "examples/programs/halo3d.c", "-o", program, "-lm"]
        subprocess.run(built, check=True)
        command = [bench.fmpl, "run", "-n", "4", "--oversubscribe", program, "96", "1000000"]
        job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            works = looks_at(job)
            stopped = int(works[2 + 2].split()[1])
            os.kill(stopped, signal.SIGSTOP)
            time.sleep(1)
            waits = looks_at(job)
            os.kill(stopped, signal.SIGCONT)
        finally:
            job.terminate()
            job.wait()
    ranks = [text.split() for text in works[2:]]
    sends = [row[0] for row in ranks if row[3] != "0"]
    for_it = sum(bool(re.search(r" 2, index \d+: \d", text)) for text in waits[2:])
    lines = ["$ fmpl top", *works, "", f"$ kill -STOP {stopped}", "$ fmpl top", *waits]
    made = terminal(lines)
    kept, well = picture_of_docs(
        "top.svg", "tuning.md", made, lambda kept: lines_shown(kept).count(works[1]) == 2 and len(lines_shown(kept)) == len(lines) - 1
    )
    shown = f"{works[0]}; with rank 2 stopped {for_it} wait for it; {kept}"
    return shown, sends == ["0", "1", "2", "3"] and for_it > 0 and well
