/** Extends the completion script for bash. The extended script works without the package bash-completion, and also completes names of files. */
import type { Command } from 'commander'
import type { ProgramIO } from './terminal.js'

/** The script calls this function of bash-completion, so it is defined if it is missing. */
const BEFORE = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref() {
        words=("\${COMP_WORDS[@]}")
        cword=$COMP_CWORD
        cur=\${COMP_WORDS[COMP_CWORD]}
        prev=\${COMP_WORDS[COMP_CWORD - 1]}
    }
fi
`

/** Completes names of files where the program has no suggestion, for example after `submit` and `--config`. */
const AFTER = `
__agent_tasks_complete_or_file() {
    __agent_tasks_complete
    if [[ \${#COMPREPLY[@]} -eq 0 ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")
    fi
}
complete -F __agent_tasks_complete_or_file agent-tasks
`

/** Prints `BEFORE`, the script of `completion bash`, and `AFTER`. */
export function completeBash(program: Command, io: ProgramIO): void {
  const isBash = (command: Command): boolean => command.name() === 'completion' && command.args[0] === 'bash'
  program
    .hook('preAction', (_program, command) => {
      if (isBash(command)) io.stdout.write(BEFORE)
    })
    .hook('postAction', (_program, command) => {
      if (isBash(command)) io.stdout.write(AFTER)
    })
}
