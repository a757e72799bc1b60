/** Loads optional packages. They are not dependencies of this package: users install them. They are loaded on first use, and only in Node. */
import { AgentTasksError } from '../errors.js'
import { isNode, nodeBuiltin } from './node-builtins.js'

const loaded = new Map<string, unknown>()

/**
 * @param users the feature that needs the package, as the subject of the error's sentence
 * @throws AgentTasksError `PACKAGES_MISSING` if the package is not installed
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
