/** Optional packages. They are not installed with this package and are loaded on first use, only in Node. */
import { AgentTasksError } from '../errors.js'
import { isNode, nodeBuiltin } from '../node-builtins.js'

const loaded = new Map<string, unknown>()

/**
 * @param users the feature that needs the package; the subject of a sentence
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
