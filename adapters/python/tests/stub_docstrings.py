"""Copies the docstrings of the installed package to its stub file.

Editors show the docstrings of the stub file, because they do not import the extension module.

    python tests/stub_docstrings.py     # rewrites python/ndscatter/__init__.pyi
"""

import ast
import inspect
import pathlib
import textwrap

import ndscatter

STUB = pathlib.Path(__file__).parents[1] / "python/ndscatter/__init__.pyi"


def declarations(tree):
    """Yield each public declaration of a stub with a docstring, and the docstring."""
    done = set()
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if node.name in done:
            continue  # another overload of the same function
        done.add(node.name)
        known = getattr(ndscatter, node.name)
        yield node, known.__doc__
        for member in node.body if isinstance(node, ast.ClassDef) else ():
            # Python shows no docstring of `__call__`, so the class describes the call.
            if getattr(member, "name", "") == "__call__":
                yield member, known.__doc__
            elif isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                yield member, getattr(known, member.name).__doc__


def has_docstring(node):
    first = node.body[0]
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and first.value.value is not ...


def with_docstrings(stub):
    """Return the text of a stub file with the docstrings of the installed package."""
    lines = stub.splitlines()
    for node, docstring in reversed(list(declarations(ast.parse(stub)))):
        first = node.body[0]
        indent = " " * (node.col_offset + 4)
        text = f'"""{inspect.cleandoc(docstring)}\n"""' if "\n" in docstring else f'"""{docstring.strip()}"""'
        new = textwrap.indent(text, indent, lambda line: bool(line.strip())).splitlines()
        if has_docstring(node):
            lines[first.lineno - 1 : first.end_lineno] = new
        elif isinstance(node, ast.ClassDef):
            at = min([first.lineno, *(line.lineno for line in getattr(first, "decorator_list", ()))])
            lines[at - 1 : at - 1] = new
        else:
            row = first.lineno - 1
            lines[row : row + 1] = [lines[row][: first.col_offset].rstrip(), *new]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    STUB.write_text(with_docstrings(STUB.read_text()))
