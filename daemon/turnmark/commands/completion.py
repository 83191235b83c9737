"""`turnmark completion SHELL`: a script that completes commands, options, topics and sessions.

It is made of the parsers themselves, so it knows what `--help` knows. Topics and sessions are asked
of the daemon while one types; where none answers there is nothing to choose from.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from turnmark.commands import registry
from turnmark.commands.invocation import Invocation
from turnmark.commands.parser import COMMON_HELP, VALUED_OPTIONS, Parser, parser_of

_SHELLS = ("bash", "zsh", "fish")
# A list's first word of each line but the heading; into a pipe no line is cut. bash expands what it
# chooses from, so a name with anything but letters, digits and these signs in it is not offered.
_FIRST_WORDS = "turnmark {} 2>/dev/null | sed -e 1d -e 's/ .*//' -e '\\|[^[:alnum:]_.:/#@+=,-]|d'"
COMPLETED = {
    "open": _FIRST_WORDS.format("topics"),
    "show": _FIRST_WORDS.format("topics"),
    "export": _FIRST_WORDS.format("sessions"),
    "tree": _FIRST_WORDS.format("sessions"),
    "append": _FIRST_WORDS.format("sessions"),
}
# What stands after a command and is not in its parser as a choice.
_KNOWN = {
    "help": registry.names(),
    "setup": ("service", "claude-code"),
    "hook": ("claude-code",),
}

_BASH = """\
_turnmark() {
    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
    local command="" skip="" word choices=""
    COMPREPLY=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [ -n "$skip" ]; then skip=""; continue; fi
        case "$word" in
            %(valued)s) skip=1 ;;
            -*) ;;
            *) command="$word"; break ;;
        esac
    done
    case "$command $previous" in
%(values)s
    esac
    if [ -z "$choices" ]; then
        case "$previous" in
            %(taking)s) return ;;
        esac
        case "$command" in
%(commands)s
        esac
    fi
    COMPREPLY=($(compgen -W "$choices" -- "$current"))
}
complete -o default -F _turnmark turnmark
"""
_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
_HINTS = {
    "bash": "for good, in ~/.bashrc: source <(turnmark completion bash)",
    "zsh": "for good, in ~/.zshrc: source <(turnmark completion zsh)",
    "fish": "for good: turnmark completion fish > ~/.config/fish/completions/turnmark.fish",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("shell", metavar="SHELL", choices=_SHELLS, help="bash, zsh or fish")


def run(invocation: Invocation) -> int:
    """Prints the script; on a terminal a line beside it says where it goes."""
    shell = invocation.options.shell
    script = fish_script() if shell == "fish" else bash_script()
    if shell == "zsh":
        script = _ZSH + script
    if invocation.as_json:
        invocation.print_json({"shell": shell, "script": script})
        return 0
    invocation.print(script.rstrip("\n"))
    if invocation.stdout.isatty():
        invocation.note(_HINTS[shell])
    return 0


def bash_script() -> str:
    """Returns what bash sources, and zsh where it completes as bash does."""
    parsers = _parsers()
    taking = {option for parser in parsers.values() for option in _valued(parser)}
    return _BASH % {
        "valued": "|".join(sorted(VALUED_OPTIONS)),
        "values": "\n".join(_bash_values(parsers)),
        "taking": "|".join(sorted(taking)),
        "commands": "\n".join(_bash_commands(parsers)),
    }


def _parsers() -> dict[str, Parser]:
    return {name: parser_of(name)[0] for name in registry.names()}


def _bash_values(parsers: dict[str, Parser]) -> Iterator[str]:
    """Yields a case for each option whose values are known."""
    for name, parser in parsers.items():
        for option, choices in _chosen(parser):
            yield f'        "{name} {option}") choices="{" ".join(choices)}" ;;'


def _bash_commands(parsers: dict[str, Parser]) -> Iterator[str]:
    """Yields a case for each command, and one for where none was typed yet."""
    common = (*(option for option, _metavar, _help in COMMON_HELP), "--help", "--version")
    yield f'            "") choices="{" ".join((*parsers, *common))}" ;;'
    for name, parser in parsers.items():
        asked = f" $({COMPLETED[name]})" if name in COMPLETED else ""
        choices = " ".join([*_arguments(name, parser), *parser.option_names()])
        yield f'            {name}) choices="{choices}{asked}" ;;'


def fish_script() -> str:
    """Returns what fish reads from its directory of completions."""
    parsers = _parsers()
    lines = ["complete -c turnmark -f"]
    for name, parser in parsers.items():
        about = _quoted(registry.help_of(name))
        lines.append(f"complete -c turnmark -n __fish_use_subcommand -a {name} -d {about}")
        within = f"complete -c turnmark -n '__fish_seen_subcommand_from {name}'"
        lines += [f"{within} {_fish_option(action)}" for action in _optional(parser)]
        if words := _arguments(name, parser):
            lines.append(f"{within} -a '{' '.join(words)}'")
        if name in COMPLETED:
            lines.append(f"{within} -a {_quoted(f'({COMPLETED[name]})')}")
        elif _takes_files(parser):
            lines.append(f"{within} -F")
    return "\n".join(lines)


def _fish_option(action: argparse.Action) -> str:
    names = [
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
        for name in action.option_strings
    ]
    value = ["-r -F"] if action.nargs != 0 else []
    if action.choices:
        value = [f"-x -a '{' '.join(map(str, action.choices))}'"]
    return " ".join([*names, *value, "-d", _quoted(action.help or "")])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _optional(parser: Parser) -> list[argparse.Action]:
    return [action for action in parser.arguments() if action.option_strings]


def _valued(parser: Parser) -> Iterator[str]:
    """Yields every option that takes a value."""
    for action in _optional(parser):
        if action.nargs != 0:
            yield from action.option_strings


def _chosen(parser: Parser) -> Iterator[tuple[str, list[str]]]:
    """Yields every option that takes one of some words, with these."""
    for action in _optional(parser):
        if action.choices:
            for option in action.option_strings:
                yield option, [str(choice) for choice in action.choices]


def _takes_files(parser: Parser) -> bool:
    """Tells whether what stands after a command is a path."""
    return any(
        action.metavar == "PATH" and not action.option_strings for action in parser.arguments()
    )


def _arguments(name: str, parser: Parser) -> list[str]:
    """Returns the words that may stand after a command beside its options."""
    choices = [
        str(choice)
        for action in parser.arguments()
        if not action.option_strings
        for choice in action.choices or ()
    ]
    return [*choices, *_KNOWN.get(name, ())]
