"""The front doors: one public function per file, its signature, its docstring, a few lines."""
