/** The version of this package, from its manifest. */
import { createRequire } from 'node:module'

const manifest = createRequire(import.meta.url)('agent-tasks/package.json') as { readonly version: string }

export const packageVersion: string = manifest.version
