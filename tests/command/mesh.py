#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""mesh.py EXPORT GROUPS [jax]: ranks reshaped to the axes of an export for JAX
give the groups that `moefold groups` has; with jax the same of a real mesh on
CPU devices, and the collectives of a tiny MoE layer lowered on it."""
import itertools
import json
import os
import sys

FOLDS = {"tp": "attention", "cp": "attention", "dp": "attention",
         "pp": "attention", "etp": "expert", "ep": "expert", "edp": "expert"}


def groups_of(axes, varying, number):
    """Ranks that differ on VARYING alone; NUMBER gives that of coordinates."""
    fixed = [a for a in axes if a[0] not in varying]
    free = [a for a in axes if a[0] in varying]
    found = []
    for rest in itertools.product(*(range(n) for _, n in fixed)):
        at = dict(zip((name for name, _ in fixed), rest))
        group = []
        for some in itertools.product(*(range(n) for _, n in free)):
            at.update(zip((name for name, _ in free), some))
            group.append(number(at))
        found.append(sorted(group))
    return sorted(found)


def row_major(axes):
    def number(at):
        rank = 0
        for name, size in axes:
            rank = rank * size + at[name]
        return rank
    return number


def compare(export, groups, axes, number):
    for fold, part in FOLDS.items():
        got = groups_of(axes, export[part][fold], number)
        assert got == sorted(groups[fold]), (fold, got, groups[fold])
    spec = export["specs"]
    assert spec["expert_gate"][0] == export["expert"]["ep"]
    assert spec["expert_gate"][2] == export["expert"]["etp"]
    assert spec["hidden_states"][0] == export["attention"]["dp"]


def with_jax(export, groups, axes):
    world = 1
    for _, size in axes:
        world *= size
    os.environ["XLA_FLAGS"] = (
        "--xla_force_host_platform_device_count=%d" % world)
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    import numpy
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    names = [name for name, _ in axes]
    mesh = Mesh(numpy.array(jax.devices()).reshape([n for _, n in axes]),
                names)
    compare(export, groups, axes,
            lambda at: mesh.devices[tuple(at[n] for n in names)].id)

    def spec(tensor):
        return PartitionSpec(*[tuple(a) if a else None
                               for a in export["specs"][tensor]])

    def put(tensor, *shape):
        return jax.device_put(jnp.ones(shape),
                              NamedSharding(mesh, spec(tensor)))
    tokens = 4 * world
    x = put("hidden_states", tokens, tokens, 8)
    gate = put("expert_gate", world, 8, 2 * world)
    down = put("expert_down", world, 2 * world, 8)

    def layer(x, gate, down):
        t = x.reshape(world, -1, 8)
        t = jax.lax.with_sharding_constraint(t, NamedSharding(
            mesh, PartitionSpec(tuple(export["expert"]["ep"]) or None)))
        h = jax.nn.silu(jnp.einsum("etd,edf->etf", t, gate))
        return jnp.einsum("etf,efd->etd", h, down).reshape(x.shape)
    text = jax.jit(layer, out_shardings=NamedSharding(
        mesh, spec("hidden_states"))).lower(x, gate, down).compile().as_text()
    ops = {c["op"] for c in export["collectives"]}
    found = {op for op, hlo in (("all_to_all", "all-to-all"),
                                ("all_gather", "all-gather"),
                                ("reduce_scatter", "reduce-scatter"),
                                ("all_reduce", "all-reduce")) if hlo in text}
    if "all_to_all" in ops:
        assert found & {"all_to_all", "all_gather"}, found
    if len(export["expert"]["etp"]):
        assert found & {"reduce_scatter", "all_reduce"}, found


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        export = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        groups = json.load(file)["groups"]
    axes = [(a["name"], a["size"]) for a in export["axes"]]
    assert len({name for name, _ in axes}) == len(axes), axes
    compare(export, groups, axes, row_major(axes))
    if "jax" in sys.argv[3:]:
        with_jax(export, groups, axes)


main()
