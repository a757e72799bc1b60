// `npm run docs:api`: makes the API reference from the TSDoc comments of every entry point in package.json. It fails when something public has no
// comment.
import { readFileSync } from 'node:fs'
import { URL } from 'node:url'

const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const entryPoints = Object.values(exports).flatMap(({ types }) =>
  types === undefined ? [] : [types.replace('./dist/', '../').replace(/\.d\.ts$/, '.ts')],
)

export default {
  entryPoints,
  tsconfig: '../src/tsconfig.build.json',
  plugin: ['typedoc-plugin-markdown', './typedoc-plugin.mjs'],
  out: '../docs/api',
  // One page for each entry point. Its name is that of the import.
  name: 'API',
  outputFileStrategy: 'modules',
  entryFileName: 'index',
  hidePageHeader: true,
  hideBreadcrumbs: true,
  readme: 'none',
  excludeExternals: true,
  excludePrivate: true,
  disableSources: true,
  // A public name may mention a type that is not public: docs/adr/0061.
  validation: { notDocumented: true, invalidLink: true, notExported: false },
  requiredToBeDocumented: ['Variable', 'Function', 'Class', 'Interface', 'Property', 'Method', 'Accessor', 'TypeAlias'],
  treatValidationWarningsAsErrors: true,
}
