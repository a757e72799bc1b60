/** A program in a terminal of tmux. */
import { execFileSync } from 'node:child_process'

export interface Terminal {
  screen(): string
  /** Types a text, without a line break. */
  type(text: string): void
  enter(): void
  close(): void
}

const tmux = (...args: readonly string[]): string => execFileSync('tmux', args, { encoding: 'utf8' })

/** @throws Error if tmux is not installed */
export function openTerminal(
  name: string,
  cwd: string,
  command: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Terminal {
  const variables = Object.entries({ ...env, TERM: 'xterm-256color' }).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}=${value}`],
  )
  tmux('new-session', '-d', '-s', name, '-x', '120', '-y', '40', '-c', cwd, 'env', '-i', ...variables, ...command)
  return {
    screen: () => tmux('capture-pane', '-p', '-t', name),
    type: (text) => void tmux('send-keys', '-t', name, '-l', text),
    enter: () => void tmux('send-keys', '-t', name, 'Enter'),
    close: () => {
      try {
        tmux('kill-session', '-t', name)
      } catch {
        // The program has ended by itself.
      }
    },
  }
}
