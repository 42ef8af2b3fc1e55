"""State stores that are SQLite databases, and the plug-ins that let snapstore know them.

``store`` is what an application uses; ``backend`` and ``layout`` are what snapstore loads.
"""
