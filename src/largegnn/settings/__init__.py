"""Every setting: sections, presets, and how they are written and read."""
