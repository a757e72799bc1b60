/** Packages that few programs need: they are not installed with this one, and are loaded when they are first needed, in Node. */
import { AgentTasksError } from '../errors.js'
import { isNode, nodeBuiltin } from '../node-builtins.js'

const loaded = new Map<string, unknown>()

/**
 * @param users what needs it: the subject of a sentence
 * @throws AgentTasksError `PACKAGES_MISSING`
 */
export function loadPackage(name: string, version: number, users: string): unknown {
  try {
    if (!isNode) throw new Error('This is not Node.')
    if (!loaded.has(name)) loaded.set(name, nodeBuiltin('node:module').createRequire(import.meta.url)(name))
    return loaded.get(name)
  } catch (cause) {
    const message = `${users} need the package ${name}. Run: npm install ${name}@${version}`
    throw new AgentTasksError('PACKAGES_MISSING', message, { cause })
  }
}
