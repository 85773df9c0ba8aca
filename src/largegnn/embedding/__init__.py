"""From subgraphs to one vector for each entity; import what you need from the module that has it."""
