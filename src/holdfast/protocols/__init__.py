"""All extension points, a module for each reader. Structural: a plug-in inherits from nothing.

A plug-in is a frozen dataclass. Its fields are its settings and, with their annotations, the configuration schema too;
the first line of its docstring is its entry in the catalogue. What the rest of Holdfast must know of it before it acts
is its class variable `traits`.

`fault`, `world_fault`, `check`, `service`, `sandbox` and `reporter` are what a plug-in implements, `executor` and
`planner` what a program on top of Holdfast may. `world` and `trial` are what a plug-in is given.
"""
