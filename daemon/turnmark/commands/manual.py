"""What help says beyond a line: when a command is wanted, and examples that can be typed.

A test parses every example, so none shows an option that is not there.
"""

from __future__ import annotations

import shutil
import textwrap

import msgspec

from turnmark.commands import registry
from turnmark.commands.parser import COMMON_HELP, parser_of

# A paragraph that is wider is harder to read; one that is narrower is none.
_WIDEST, _NARROWEST = 90, 20


class Page(msgspec.Struct, frozen=True):
    """`about` is filled to the terminal's width; an example is what to type, and why."""

    about: str
    examples: tuple[tuple[str, str], ...] = ()

    def examples_text(self) -> str:
        """Returns the examples below their heading, empty where there are none."""
        if not self.examples:
            return ""
        lines = [f"  {typed}" + (f"  # {why}" if why else "") for typed, why in self.examples]
        return "\n".join(["examples:", *lines])

    def about_text(self) -> str:
        """Returns the paragraph in lines that a terminal has room for."""
        columns = min(shutil.get_terminal_size().columns - 2, _WIDEST)
        return textwrap.fill(" ".join(self.about.split()), max(columns, _NARROWEST))


_PAGES = {
    "serve": Page(
        "Runs the daemon until Ctrl-C or a signal ends it. It is ready when it has printed "
        "`ready` and its socket's path. `turnmark setup service` lets systemd do this for "
        "you. After a change of the configuration, start it anew.",
        (("turnmark serve", ""), ("turnmark serve --drain", "writes what is owed before it ends")),
    ),
    "status": Page(
        "Says first whether all is well, and else what to do. Then: what memory holds, who "
        "writes, how far the transcripts of agents are read. Ends with 0 also where "
        "something is to be done.",
        (("turnmark status", ""), ("turnmark status --json", "everything, for a script")),
    ),
    "setup": Page(
        "Shows what it would change, line by line, asks, and keeps what was there. Without "
        "WHAT it lists what can be set up and what is. `--undo` takes exactly its own "
        "changes back.",
        (
            ("turnmark setup", "what there is"),
            ("turnmark setup service", "systemd starts the daemon with your session"),
            ("turnmark setup claude-code", "memory before Claude Code's model, and its MCP tools"),
            ("turnmark setup claude-code --undo", ""),
        ),
    ),
    "doctor": Page(
        "Reads store and memory and checks that they hold what they promise; works with or "
        "without a daemon, and changes nothing without --repair. Ends with 1 where a "
        "promise is broken.",
        (("turnmark doctor", ""), ("turnmark doctor --repair", "while no daemon runs")),
    ),
    "backup": Page(
        "Copies the session store and the Markdown memory to a new directory; nothing waits "
        "for it. The configuration is not in it. A backup that was cut off leaves nothing.",
        (("turnmark backup /backups/turnmark-2026-08-09", ""),),
    ),
    "restore": Page(
        "Checks the whole backup first, and refuses where it would overwrite something; "
        "--force moves that aside and says where. Nothing is deleted. Stop the daemon "
        "before.",
        (("turnmark restore /backups/turnmark-2026-08-09", ""),),
    ),
    "watch": Page(
        "Prints a line for each event until Ctrl-C: tips that move, turns that were "
        "written, nights. Events hold ids and numbers, never what was said.",
        (
            ("turnmark watch", ""),
            ("turnmark watch --types TurnsWritten --json", "a JSON object a line"),
            ("turnmark watch --since 0", "first what was kept of earlier"),
        ),
    ),
    "recall": Page(
        "Prints the paragraphs and turns that answer a question best, in any language that "
        "they are in, each with who said it, when, and the file and line of the words "
        "themselves.",
        (
            ('turnmark recall "where do I live?"', ""),
            ("turnmark recall 我住在哪里", ""),
            ('turnmark recall "deadline" --project ~/code/kiosk --since 2026-08-01', ""),
            ('turnmark recall "where did I live?" --history', "also what no longer holds"),
        ),
    ),
    "show": Page(
        "Prints one thing whole and why memory holds it: a block with its sources, a source "
        "or a turn with its session and marks, a topic as it is on disk.",
        (
            ("turnmark show b-66cb0faa", "a block, as `recall` names it"),
            ("turnmark show s-bb6ea5878a78", "a source, as a footnote names it"),
            ("turnmark show people/robin", "a topic"),
            ("turnmark show 'sess-1#u7'", "a turn of a session"),
        ),
    ),
    "core": Page(
        "Prints the page that agents get at the start of each session. `turnmark remember "
        "--pin` puts something on it; [memory] core_tokens bounds it.",
        (("turnmark core", ""),),
    ),
    "topics": Page(
        "Lists the pages of the memory. They are Markdown files below topics/ that you may edit.",
        (("turnmark topics", ""), ("turnmark open people/robin", "edits one of them")),
    ),
    "open": Page(
        "Opens the topic's Markdown in VISUAL, EDITOR or vi. What you save is taken in "
        "within seconds and no automatic edit overwrites it; `turnmark log` lists it, "
        "`undo` takes it back. Into a pipe the path is printed instead.",
        (
            ("turnmark open people/robin", ""),
            ("turnmark open robin", "the same, where one topic ends so"),
            ("turnmark open", "prints the directory of all topics"),
        ),
    ),
    "remember": Page(
        "Writes one paragraph as you said it. It is found at once, and `turnmark undo` "
        "takes it back.",
        (
            ('turnmark remember "The office is closed on Fridays."', ""),
            ('turnmark remember "咖啡豆在左边的柜子里。" --topic subjects/kitchen --pin', ""),
        ),
    ),
    "log": Page(
        "Lists the revisions of the memory, newest first. Each can be taken back by its number.",
        (("turnmark log", ""), ("turnmark log -n 0", "all of them"), ("turnmark undo 12", "")),
    ),
    "undo": Page(
        "Puts back what one revision changed, and nothing else; the undo is a revision, "
        "too, so it can be undone. What later revisions rest on is not taken away without "
        "--force.",
        (("turnmark undo 12", ""), ("turnmark undo 12 --force", "as far as that goes")),
    ),
    "forget": Page(
        "Erases words from every file for ever, where undo only changes pages. It shows "
        "what would go and asks; afterwards it searches all files for the words. Agents' "
        "own transcripts and your backups are out of its reach.",
        (
            ("turnmark forget --block b-66cb0faa", ""),
            ('turnmark forget --query "blood type" --dry-run', "only shows"),
            ("turnmark forget --session sess-1 --yes", "does not ask"),
        ),
    ),
    "organize": Page(
        "Does now what happens every night: writes what is owed, joins what says the same, "
        "arranges the core page. Each step is a revision that can be taken back. What would "
        "remove much waits for --approve or --discard.",
        (("turnmark organize", ""), ("turnmark organize --approve tidy-3fa9c1d2", "")),
    ),
    "sessions": Page(
        "Lists conversations, the latest first, with their turns, their tips and what is owed.",
        (("turnmark sessions", ""),),
    ),
    "tree": Page(
        "Draws every branch of a session, and by each turn what memory made of it.",
        (("turnmark tree sess-1", ""), ("turnmark tree sess-1 --ids", "with whole ids")),
    ),
    "append": Page(
        "Adds what was said after the session's head and prints the turn's id. Memory "
        "writes it when the branch has been silent for half an hour; `turnmark flush` "
        "writes it now.",
        (
            ('turnmark append sess-1 "I moved to Porto in March."', ""),
            ('turnmark append sess-1 "Noted." --role assistant', ""),
            ("turnmark append sess-1 - --after u7", "from standard input, after that turn"),
        ),
    ),
    "import": Page(
        "Reads finished transcripts and turnmark's own exports, one file or a directory of "
        "any. What is here already is not read in twice, so it is safe to do it again.",
        (
            ("turnmark import ~/.claude/projects", ""),
            ("turnmark import session.jsonl --agent codex", ""),
            ("turnmark import sess-1.jsonl", "what `turnmark export sess-1` wrote"),
        ),
    ),
    "migrate": Page(
        "Takes OpenProgram's sessions, topics and sources over. Nothing of its own is "
        "changed, and doing it again adds only what is new.",
        (
            ("turnmark migrate openprogram ~/.openprogram --dry-run", "says what, writes nothing"),
            ("turnmark migrate openprogram ~/.openprogram", ""),
        ),
    ),
    "export": Page(
        "Prints every turn that the session reaches, with branches, head and marks.",
        (("turnmark export sess-1", "`turnmark import` takes it back"),),
    ),
    "owed": Page(
        "Lists what memory has yet to write, by branch, with the reason where something "
        "failed. Nothing that is listed is lost.",
        (("turnmark owed", ""), ("turnmark owed --session sess-1 --ids", "names the turns")),
    ),
    "flush": Page(
        "Writes now what would be written once its branch is silent. What may cost much "
        "with a paid model (--backlog, --rewrite) is only written after you have been told "
        "how much.",
        (
            ("turnmark flush", ""),
            ("turnmark flush --backlog --dry-run", "what old transcripts would cost"),
            ("turnmark flush --rewrite builtin --since 2026-08-01", "a better writer, again"),
        ),
    ),
    "mcp": Page(
        "A small process that speaks MCP with an agent and asks the daemon. The agent "
        "starts it. It needs the extra: pip install 'turnmark[mcp]'",
        (("turnmark mcp", "as the agent's configuration names it"),),
    ),
    "hook": Page(
        "Started by the agent at its hooks, with the hook's JSON on standard input. It "
        "prints memory within a tenth of a second, or nothing, and never fails. `turnmark "
        "setup claude-code` adds it.",
        (("turnmark hook claude-code", ""),),
    ),
    "demo": Page(
        "Plays a conversation that branches, in English and Chinese, with a daemon of its "
        "own in a directory that is gone at the end. Your memory is not touched.",
        (("turnmark demo", ""),),
    ),
    "completion": Page(
        "Prints a script for your shell. Topics and sessions are completed, too, while a "
        "daemon runs.",
        (
            ("source <(turnmark completion bash)", "for this shell"),
            ("turnmark completion fish", "goes to ~/.config/fish/completions/turnmark.fish"),
        ),
    ),
    "version": Page(
        "Prints what is installed. A daemon that runs on says its own version in `turnmark "
        "status`.",
        (("turnmark version", ""),),
    ),
    "help": Page(
        "Prints the list of commands, or all about one: the same as `--help` after it.",
        (("turnmark help", ""), ("turnmark help recall", "")),
    ),
}


def page_of(name: str) -> Page:
    """Returns what help says of a command beside its options."""
    return _PAGES[name]


def help_text(name: str) -> str:
    """Returns what `--help` of a command prints."""
    parser, _command = parser_of(name)
    page = page_of(name)
    parser.description, parser.epilog = page.about_text(), page.examples_text() or None
    return parser.format_help()


def overview() -> str:
    """Returns all commands by what they are for, the options of all, and the exit codes."""
    widest = max(len(name) for name in registry.names())
    lines = [
        "usage: turnmark COMMAND [options]",
        "",
        "A memory daemon for AI agents: every turn of every branch reaches one memory, once.",
    ]
    for title, names in registry.groups().items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:<{widest}}  {registry.help_of(name)}" for name in names]
    lines += [
        "",
        "options, before or after the command:",
        *(f"  {f'{name} {value}':<17}  {what}" for name, value, what in COMMON_HELP),
        "  --version, --help  print and exit",
        "",
        "exit codes: 0 done, 1 failed, 2 wrong use, 3 no daemon answers, 4 another daemon is there",
        "turnmark help COMMAND says more, with examples.",
    ]
    return "".join(f"{line}\n" for line in lines)
