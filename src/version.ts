/** The version of this package, as its manifest says. */
import { createRequire } from 'node:module'

const manifest = createRequire(import.meta.url)('agent-tasks/package.json') as { readonly version: string }

export const packageVersion: string = manifest.version
