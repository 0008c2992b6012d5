"""All extension points, one module for each kind of plug-in. A plug-in does not inherit from any of them.

A plug-in is a frozen dataclass. Its fields are its settings and, with their annotations, the configuration schema;
the first line of its docstring is its entry in the catalogue. Its class variable `traits` declares what the rest of
Holdfast must know before the plug-in acts.

`fault`, `world_fault`, `check`, `service`, `sandbox` and `reporter` are what a plug-in implements, `executor` and
`planner` what a program that uses Holdfast may implement. `world` and `trial` are passed to plug-ins.
"""
