// Does what a test tells it.
