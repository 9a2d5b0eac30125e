"""The reference of the command line, from the help of every command.

The page has every word of each help text, in its order; that is checked whenever it is made.
"""

import re
import subprocess
import textwrap

HEAD = """# Commands

The help of every command, as `antinoise COMMAND --help` prints it. `antinoise man --out DIR` writes it as manual
pages.
"""
SECTION = re.compile(r"^([A-Z][\w ]*):$")
# An option, an argument or a command, with what is on its line.
ENTRY = re.compile(r"^ {2}(?: {4})?(?P<name>[-<\[\w].*?)(?:\s{2,}(?P<text>\S.*))?$")
VALUE = re.compile(r"^ +- (?P<name>[\w-]+):(?P<text>.*)")


def helps(program, command=()):
    """(command, help) of a command and of all below it."""
    text = subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True).stdout
    yield " ".join(("antinoise", *command)), text
    for name, _ in entries(dict(sections(text)).get("Commands", [])):
        if name != "help":
            yield from helps(program, (*command, name))


def sections(text):
    """(title, lines) of each part of a help text; that of the description is empty."""
    title, lines = "", []
    for line in text.splitlines():
        usage = line.startswith("Usage: ")
        found = SECTION.match(line)
        if usage or found:
            yield title, lines
            title, lines = ("Usage", [line]) if usage else (found[1], [])
        else:
            lines.append(line.rstrip())
    yield title, lines


def entries(lines):
    """(name, lines of its text) of each option, argument or command."""
    found = []
    for line in lines:
        entry = ENTRY.match(line)
        if entry:
            found.append((entry["name"], [entry["text"]] if entry["text"] else []))
        elif found:
            found[-1][1].append(line)
    return found


def paragraphs(lines):
    """The texts between empty lines. A possible value is a text of its own, a default is not."""
    found = [""]
    for line in lines:
        value = VALUE.match(line)
        if value:
            found.append(f"- `{value['name']}`: {prose(value['text'])}")
        elif not line.strip():
            found.append("")
        elif line.strip().startswith("[default: ") and len(found) > 1 and found[-2][:2] not in ("", "- "):
            del found[-1]
            found[-1] += " " + prose(line)
        else:
            found[-1] += " " + prose(line)
    return [text.strip() for text in found if text.strip()]


def prose(text):
    """Text in which nothing is Markdown but code."""
    return re.sub(r"(`[^`]*`)|([<*_])", lambda match: match[1] or "\\" + match[2], text.strip())


def filled(text, indent):
    return textwrap.fill(
        text,
        width=110,
        initial_indent=indent,
        subsequent_indent=indent + "  " * text.startswith("- "),
        break_long_words=False,
        break_on_hyphens=False,
    )


def entry(name, lines):
    """An option or argument as an item of a list."""
    first, *rest = paragraphs(lines) or [""]
    parts = [filled(f"- `{name}`: {first}".removesuffix(": "), "")]
    for text in rest:
        parts.append(("\n" if not text.startswith("- ") else "") + filled(text, "  "))
    return "\n".join(parts)


def fenced(lines):
    text = textwrap.dedent("\n".join(lines)).strip("\n")
    return f"```text\n{text}\n```"


def commands(title, lines, command):
    """The list of a command's subcommands, with links."""
    for name, text in entries(lines):
        anchor = f"{command} {name}".replace(" ", "-")
        label = f"[{name}](#{anchor})" if name != "help" else name
        yield filled(f"- {label}: " + " ".join(paragraphs(text)), "")


def section(command, text):
    """The part of the page about a command."""
    parts = [f"## {command}"]
    for title, lines in sections(text):
        if title == "":
            parts += [filled(paragraph, "") for paragraph in paragraphs(lines)]
        elif title == "Commands":
            parts += [f"**{title}**", "\n".join(commands(title, lines, command))]
        elif title in ("Usage", "Examples") or not entries(lines):
            parts += ([] if title == "Usage" else [f"**{title}**"]) + [fenced(lines)]
        else:
            parts += [f"**{title}**", "\n".join(entry(*found) for found in entries(lines))]
    page = "\n\n".join(parts) + "\n"
    shown = re.sub(r"^(## .*|```.*)$|\]\(#[\w-]*\)", "", page, flags=re.M)
    assert words(shown) == words(text), command
    return page


def words(text):
    return re.findall(r"[A-Za-z0-9]+", text)


def page(program):
    """The Markdown of the reference, from this program."""
    return "\n".join([HEAD, *(section(*one) for one in helps(program))])
