/** The documents of the repository. */
import { readdirSync } from 'node:fs'

/** Their paths, from the root of the repository, which must be the working directory. The generated API reference is left out. */
export function documents(): string[] {
  const inDocs = readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md') && !path.startsWith('api/') && !path.startsWith('.'))
    .map((path) => `docs/${path}`)
  return ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...inDocs.sort()]
}
