/** Decides where a subagent of the configuration runs: in the directory that the call names, if it may name one, or in the client's project. */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { validationError, type ToolResult } from '../tools/tool.js'
import type { Backend } from './backend.js'
import { listRoots, type LowLevelServer } from './low-level-server.js'

/** Finds the project folder of a client; undefined when the client reports none. */
export type FindProject = () => Promise<string | undefined>

/** How long a client may take to list its roots, in ms. */
const ROOTS_MS = 3000

/** The first root of a client that is a directory on this machine. Never rejects. */
export async function projectOf(server: LowLevelServer): Promise<string | undefined> {
  try {
    const roots = await listRoots(server, ROOTS_MS)
    return roots.map(toPath).find((path) => path !== undefined && isDirectory(path))
  } catch {
    // A client that cannot report its project has none.
    return undefined
  }
}

/** Returns the directory for one call, or a refusal if the call may not name this directory. `cwd: undefined` means the subagent's default directory. */
export async function workingDirectory(
  { config, projectFolder }: Backend,
  name: unknown,
  asked: unknown,
  findProject: FindProject,
): Promise<{ readonly cwd: string | undefined } | { readonly refusal: ToolResult }> {
  const subagent = config.subagents.find((each) => each.name === name)
  if (asked === undefined) {
    return { cwd: subagent !== undefined && subagent.cwd === undefined ? await findProject() : undefined }
  }
  // The tool itself refuses the unknown name.
  if (subagent === undefined) return { cwd: undefined }
  const refuse = (expected: string) => ({ refusal: validationError('task', 'params.cwd', asked, expected) })
  if (!subagent.cwdPerCall) return refuse('no cwd, because the configuration of the subagent does not set cwdPerCall')
  if (typeof asked !== 'string' || asked.includes('\0')) return refuse('the path of a directory')
  const cwd = resolve((await findProject()) ?? projectFolder, asked)
  return isDirectory(cwd) ? { cwd } : refuse('a directory that exists')
}

function toPath(uri: string): string | undefined {
  try {
    return fileURLToPath(uri)
  } catch {
    return undefined
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
}
