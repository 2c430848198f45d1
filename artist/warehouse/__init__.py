"""The slow path: which regions should hold which tables (MAST's Tetris, OSDI 2024, section 3)."""
