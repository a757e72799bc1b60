/**
 * Adds the command `agent-tasks` to the PATH of programs that ask questions. If the host was started by a full path, PATH may not contain the command.
 */
import { nodeBuiltin } from '../system/node-builtins.js'

/**
 * Appends the folder of the installed command to the PATH. The folder is `node_modules/.bin`, or for a global installation the folder of Node.
 * @param env the variables of the program, which replace those of this process
 * @returns the new variable PATH; an empty object if the command is not installed, or the program has no PATH
 */
export function pathWithOwnCommand(env: NodeJS.ProcessEnv): { readonly PATH?: string } {
  const path = 'PATH' in env ? env['PATH'] : process.env['PATH']
  const folder = commandFolder()
  if (folder === undefined || path === undefined || path === '') return {}
  return { PATH: `${path}${nodeBuiltin('node:path').delimiter}${folder}` }
}

function commandFolder(): string | undefined {
  const path = nodeBuiltin('node:path')
  const { existsSync } = nodeBuiltin('node:fs')
  // The `node_modules` folders that contain this file, and those of the parent folders.
  const packages =
    nodeBuiltin('node:module')
      .createRequire(import.meta.url)
      .resolve.paths('agent-tasks') ?? []
  const folders = [...packages.map((folder) => path.join(folder, '.bin')), path.dirname(process.execPath)]
  return folders.find((folder) => existsSync(path.join(folder, 'agent-tasks')))
}
