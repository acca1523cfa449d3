#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""compare.py GOT WANT [BOUND]: all tensors of WANT are in GOT, of the same
shape, and within BOUND (1e-5) of the largest entry of WANT's."""
import json
import struct
import sys


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    length, = struct.unpack("<Q", data[:8])
    out = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", name
        a, b = (8 + length + i for i in entry["data_offsets"])
        out[name] = (entry["shape"],
                     struct.unpack("<%df" % ((b - a) // 4), data[a:b]))
    return out


def main():
    got, want = read(sys.argv[1]), read(sys.argv[2])
    bound = float(sys.argv[3]) if len(sys.argv) > 3 else 1e-5
    wrong = sorted(set(got) ^ set(want))
    for name in sorted(set(got) & set(want)):
        if got[name][0] != want[name][0]:
            wrong.append(name)
            continue
        most = max(map(abs, want[name][1]), default=0) or 1
        off = max((abs(a - b) for a, b in zip(got[name][1], want[name][1])),
                  default=0)
        if not off <= bound * most:
            wrong.append("%s: off by %g of %g" % (name, off, most))
    print("\n".join(wrong) or "%d tensors agree" % len(want))
    return bool(wrong)


sys.exit(main())
