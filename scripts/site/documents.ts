/** The documents of the repository. */
import { readdirSync } from 'node:fs'

/**
 * Returns the paths of the documents, from the root of the repository. The root must be the working directory. Leaves out the generated API reference.
 */
export function documents(): string[] {
  const inDocs = readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md') && !path.startsWith('api/') && !path.startsWith('.'))
    .map((path) => `docs/${path}`)
  return ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...inDocs.sort()]
}
