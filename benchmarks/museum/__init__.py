"""A museum of real bugs: mistakes of public projects, replayed in ports of our own.

catalogue   what an exhibit is, and the list of them
models      small models of the families in which the bugs happened
packing     quantised blocks: packed and unpacked
replicas    ports of these models in torch
rooms       the bugs: what each changed in a port, where it first shows, and who told of it
tour        every exhibit before and after its fix, and what byhand says
page        the same as docs/museum.md

python -m benchmarks.museum [--record] [EXHIBIT …]
"""
