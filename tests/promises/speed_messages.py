"""Messages between two ranks against the best of all MPIs, near and far, buffers where malloc puts them."""

messages = Sweep(against=all_rivals)

# Benchmark, what it is called, and limits by size: (near, far).
LIMITS = [
    (("pingpong", "one way"), ("echo", "one way, echo"),
     {"8": (0.35, 0.50), "64": (0.45, 0.45), "1k": (0.5, 0.5), "4k": (0.6, 0.6), "8k": (0.7, 0.7), "64k": (0.65, 0.65), "256k": (0.55, 0.7),
      "1M": (0.55, 0.7), "4M": (0.55, 0.7), "16M": (0.55, 0.7)}),
    (("exchange", "exchange"), {"8": (0.4, 0.8), "1k": (0.55, 0.75), "64k": (0.95, 0.95), "1M": (0.95, 0.95)}),
    (("stream", "stream on one index"), {"8": (0.6, 0.6), "1k": (0.7, 0.9)}),
    (("window", "window of 64"), ("waitany", "window of 64, as they come"),
     {"8": (0.35, 0.35), "1k": (0.7, 0.7), "8k": (0.7, 0.9), "64k": (0.5, 0.85), "1M": (0.6, 0.9)}),
]

for *kinds, limits in LIMITS:
    for name, what in kinds:
        for size, pair in limits.items():
            @speed_line(f"{what} {size_text(size)}", "<= {} near, {} far".format(*pair), [(messages, name, size)])
            def _(name=name, size=size, pair=pair):
                return against_best(messages.case(name, size_text(size)), pair)

for name, what in LIMITS[0][:2]:
    @speed_line(f"{what} 8 B over the raw hop", "<= 1.5 near, 1.1 far", [(messages, name, "8")])
    def _(name=name):
        return over_hop(messages.case(name, "8 B"), (1.5, 1.1))
