/** Runs Debian's `postgresql`: a server for each test, in its own folder, on a port that the system chooses. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { freePort } from './free-port.js'

/** The folder in which Debian puts the programs. It has a folder for each version. */
const PROGRAMS = '/usr/lib/postgresql'

/** How long a server may take to answer, in ms. It is long, because only a hang should fail. */
const START_MS = 60_000

/** A server of one test. */
export interface PostgresServer {
  /** A `postgres://` URL with its superuser. */
  readonly url: string
  readonly port: number
  /** The folder with its data. */
  readonly folder: string
  /** Kills the server with all its processes (SIGKILL). Its data remains. */
  kill(): Promise<void>
  /** Starts the server again, on the same port with the same data. */
  start(): Promise<void>
  /** Runs statements as the superuser. */
  run(...statements: string[]): Promise<readonly Readonly<Record<string, unknown>>[]>
  /** Ends the server, and removes its data. */
  close(): Promise<void>
}

/** Whether the programs of PostgreSQL are installed. */
export const hasPostgres = (): boolean => newestVersion() !== undefined

/** How a server of a test differs from others. */
export interface PostgresServerOptions {
  /** The language of its messages, such as `de`. Default: English. */
  readonly language?: string
  /** The server of which it is a streaming replica. */
  readonly replicaOf?: PostgresServer
}

/** Starts a server. Resolves when the server answers. @throws Error when PostgreSQL is not installed */
export async function startPostgres(
  settings: Readonly<Record<string, string>> = {},
  { language, replicaOf }: PostgresServerOptions = {},
): Promise<PostgresServer> {
  const programs = findPrograms()
  const user = unprivileged()
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-postgres-'))
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const options = {
    cwd: folder,
    ...user,
    env: { ...process.env, ...(language !== undefined && { LANGUAGE: language }) },
  }
  const [creator, created] =
    replicaOf === undefined
      ? ['initdb', ['-U', 'postgres', '--auth=trust', '--no-sync', '--encoding=UTF8', '--locale=C.UTF-8']]
      : ['pg_basebackup', ['-d', replicaOf.url, '--write-recovery-conf', '--checkpoint=fast', '--no-sync']]
  execFileSync(join(programs, creator), ['-D', data, ...created], { ...options, stdio: 'ignore' })
  const port = await freePort()
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const set = Object.entries({ listen_addresses: '127.0.0.1', unix_socket_directories: '', ...settings })
  const args = ['-D', data, '-p', String(port), ...set.flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  let server: ChildProcess | undefined
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ended = server
    server = undefined
    if (ended?.pid === undefined || ended.exitCode !== null || ended.signalCode !== null) return
    const exited = once(ended, 'exit')
    // The processes of the server are a process group.
    process.kill(signal === 'SIGKILL' ? -ended.pid : ended.pid, signal)
    await exited
  }
  const start = async (): Promise<void> => {
    for (let waited = 0; ; waited += 50) {
      server = spawn(join(programs, 'postgres'), args, { ...options, stdio: 'ignore', detached: true })
      if (await answers(url, server)) return
      // The shared memory of a killed server stays for a moment, so the start is tried again.
      if (waited >= START_MS) throw new Error(`postgres has ended with ${server.exitCode}`)
      await pause(50)
    }
  }
  await start()
  return {
    url,
    port,
    folder,
    kill: () => end('SIGKILL'),
    start,
    run: async (...statements) => {
      const client = new Client({ connectionString: url })
      // The server may be killed during a statement.
      client.on('error', () => undefined)
      await client.connect()
      try {
        let rows: readonly Readonly<Record<string, unknown>>[] = []
        for (const statement of statements) rows = (await client.query<Record<string, unknown>>(statement)).rows
        return rows
      } finally {
        await client.end()
      }
    },
    close: async () => {
      await end('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Starts pgbouncer in transaction mode in front of a server: each transaction may use another connection. */
export async function startBouncer(server: PostgresServer): Promise<{ url: string; close: () => Promise<void> }> {
  const program = '/usr/sbin/pgbouncer'
  if (!existsSync(program)) throw new Error('There is no pgbouncer. Install it with: apt-get install -y pgbouncer')
  const user = unprivileged()
  const port = await freePort()
  const config = join(server.folder, 'pgbouncer.ini')
  const lines = [
    '[databases]',
    `postgres = host=127.0.0.1 port=${server.port} user=postgres`,
    '[pgbouncer]',
    ...[`listen_addr = 127.0.0.1`, `listen_port = ${port}`, 'unix_socket_dir =', 'auth_type = any'],
    ...['pool_mode = transaction', 'default_pool_size = 3', 'ignore_startup_parameters = extra_float_digits'],
  ]
  writeFileSync(config, `${lines.join('\n')}\n`)
  const bouncer = spawn(program, [config], { cwd: server.folder, ...user, stdio: 'ignore' })
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  if (!(await answers(url, bouncer))) throw new Error(`pgbouncer has ended with ${bouncer.exitCode}`)
  return {
    url,
    close: async () => {
      const exited = once(bouncer, 'exit')
      bouncer.kill('SIGKILL')
      await exited
    },
  }
}

/** Whether a server answers. Returns false when the server has ended. */
async function answers(url: string, server: ChildProcess): Promise<boolean> {
  for (let waited = 0; server.exitCode === null && server.signalCode === null; waited += 20) {
    const client = new Client({ connectionString: url })
    client.on('error', () => undefined)
    try {
      await client.connect()
      await client.end()
      return true
    } catch (error) {
      client.end().catch(() => undefined)
      if (waited >= START_MS) throw error
      await pause(20)
    }
  }
  return false
}

/** Returns the folder of the newest version. @throws Error when there is none, with the command that installs it */
function findPrograms(): string {
  const newest = newestVersion()
  if (newest === undefined) throw new Error('There is no PostgreSQL. Install it with: apt-get install -y postgresql')
  return join(PROGRAMS, newest, 'bin')
}

function newestVersion(): string | undefined {
  const versions = existsSync(PROGRAMS) ? readdirSync(PROGRAMS) : []
  return versions.sort((a, b) => Number(b) - Number(a))[0]
}

/** Returns the user that runs the server: the server refuses to run as root, so the user of Debian's package runs it. */
function unprivileged(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}
