/** A program in a terminal of tmux. */
import { execFileSync } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'

export interface Terminal {
  screen(): string
  /** Types a text, without a line break. */
  type(text: string): void
  /** Resolves when the screen shows this. */
  shows(text: RegExp): Promise<void>
  /** Presses a key, as tmux names it. */
  press(key: string): void
  /** Types a line, and enters it when the screen shows it. */
  submit(text: string): Promise<void>
  close(): void
}

/** Without frames and spaces, which come into a line when it is broken. */
const bare = (text: string): string => text.replaceAll(/[^\w[\]{}":,.-]/g, '')

/** @throws Error if tmux is not installed */
export function openTerminal(
  name: string,
  cwd: string,
  command: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Terminal {
  // A server of its own: it ends with its terminal.
  const tmux = (...args: readonly string[]): string =>
    execFileSync('tmux', ['-L', name, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  const variables = Object.entries<string | undefined>({ ...env, TERM: 'xterm-256color' }).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}=${value}`],
  )
  tmux('new-session', '-d', '-s', name, '-x', '120', '-y', '40', '-c', cwd, 'env', '-i', ...variables, ...command)
  const screen = (): string => tmux('capture-pane', '-p', '-t', name)
  const type = (text: string): void => void tmux('send-keys', '-t', name, '-l', text)
  const press = (key: string): void => void tmux('send-keys', '-t', name, key)
  const until = async (condition: () => boolean, what: string): Promise<void> => {
    for (let waited = 0; !condition(); waited += 100) {
      if (waited > 60_000) throw new Error(`the screen does not show ${what}: ${screen()}`)
      await wait(100)
    }
  }
  return {
    shows: (text) => until(() => text.test(screen()), String(text)),
    screen,
    type,
    press,
    submit: async (text) => {
      type(text)
      const end = bare(text).slice(-12)
      await until(() => bare(screen()).includes(end), end)
      // Some take an Enter right after other keys for a part of what is pasted.
      await wait(1000)
      press('Enter')
    },
    close: () => {
      try {
        tmux('kill-server')
      } catch {
        // The program has ended by itself.
      }
    },
  }
}
