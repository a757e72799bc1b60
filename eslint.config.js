// Lint rules: typescript-eslint's strict set with types, and the house habits that a rule can hold.
import js from '@eslint/js'
import prettier from 'eslint-config-prettier/flat'
import { defineConfig, globalIgnores } from 'eslint/config'
import tseslint from 'typescript-eslint'
import { documentedXstate } from './scripts/eslint/documented-xstate.js'
import { statusLiterals } from './scripts/eslint/status-literals.js'

const noEnum = { selector: 'TSEnumDeclaration', message: 'Use a union of string literals, or a const object.' }
const noDefaultExport = { selector: 'ExportDefaultDeclaration', message: 'Export by name: one name everywhere.' }
const noLiteralSpread = {
  selector: ':matches(SpreadElement, JSXSpreadAttribute)[argument.type="ObjectExpression"]',
  message: 'Write the fields themselves: the spread of a literal says nothing more.',
}
const everywhere = [noEnum, noDefaultExport, noLiteralSpread]
const noDateNow = {
  selector: 'MemberExpression[object.name="Date"][property.name="now"]',
  message: 'Time comes in through the clock option (src/system/clock.ts).',
}
const noNewDate = { selector: 'NewExpression[callee.name="Date"][arguments.length=0]', message: noDateNow.message }
const noRecordWrites = {
  selector:
    'AssignmentExpression[left.type="MemberExpression"][left.property.name="record"][left.object.type="Identifier"]',
  message: 'A record changes in a transition of the registry alone: send it an event (machines/registry-events.ts).',
}
const markup = 'What tasks contain is text, never markup.'
const noMarkup = [
  { selector: 'JSXAttribute[name.name="dangerouslySetInnerHTML"]', message: markup },
  { selector: 'Property[key.name="dangerouslySetInnerHTML"]', message: markup },
  {
    selector:
      'MemberExpression[property.name=/^(innerHTML|outerHTML|insertAdjacentHTML|srcdoc|createContextualFragment)$/]',
    message: markup,
  },
]
const timers = ['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'clearImmediate']
const noTimers = timers.map((name) => ({
  name,
  message: 'Timers come in through the clock option (src/system/clock.ts).',
}))

export default defineConfig(
  globalIgnores(['dist/', 'coverage/', 'reports/', '.stryker-tmp/']),
  js.configs.recommended,
  tseslint.configs.strictTypeChecked,
  prettier,
  {
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      curly: ['error', 'multi-line'],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-restricted-syntax': ['error', ...everywhere],
      '@typescript-eslint/consistent-type-exports': 'error',
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': [
        'error',
        { considerDefaultExhaustiveForUnions: true, requireDefaultForNonUnion: true },
      ],
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrors: 'all', ignoreRestSiblings: true },
      ],
    },
  },
  {
    name: 'library: tests own the time, and a library does not print',
    files: ['src/**/*.ts', 'machines/**/*.ts'],
    ignores: ['src/system/clock.ts', 'src/cli/**', 'src/page/app/**'],
    rules: {
      'no-console': ['error', { allow: ['error'] }],
      'no-restricted-globals': ['error', ...noTimers],
      'no-restricted-syntax': ['error', ...everywhere, noDateNow, noNewDate],
    },
  },
  {
    name: 'async tasks: records are written by machines/ alone',
    files: ['src/{async-tasks,features,host,mcp,tools}/**/*.ts'],
    rules: {
      'no-restricted-syntax': ['error', ...everywhere, noDateNow, noNewDate, noRecordWrites],
    },
  },
  {
    name: 'async tasks: what a status means is in machines/task-status.ts',
    files: [
      'machines/*.ts',
      'machines/parts/*.ts',
      'src/{async-tasks,features,host,mcp,observability/telemetry,page,testing,tools}/**/*.ts',
    ],
    ignores: ['machines/{command-task,lane,instance}.ts', 'src/page/command-*.ts', 'src/page/app/**'],
    plugins: { status: { rules: { 'status-literals': statusLiterals } } },
    rules: { 'status/status-literals': 'error' },
  },
  {
    name: 'the registry is for the manager and the features alone',
    files: ['src/{host,mcp,page,tools}/**/*.ts', 'src/features/*/{command,mcp,page,tool}.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        { property: 'registry', message: 'Read through `manager.reads`, and change tasks through the manager.' },
      ],
    },
  },
  {
    name: 'the pages in the browser: text stays text',
    files: ['src/page/app/**/*.{ts,tsx}', 'src/client/extension/options/*.ts'],
    rules: { 'no-restricted-syntax': ['error', ...everywhere, ...noMarkup] },
  },
  {
    name: 'XState: what it does not document may change in any version',
    files: ['src/**/*.ts', 'machines/**/*.ts'],
    plugins: { local: { rules: { 'documented-xstate': documentedXstate } } },
    rules: { 'local/documented-xstate': 'error' },
  },
  {
    name: 'machines: the same input gives the same states',
    files: ['machines/**/*.ts'],
    rules: {
      'no-restricted-globals': [
        'error',
        ...noTimers,
        ...['process', 'Buffer', 'crypto', 'fetch', 'performance'].map((name) => ({
          name,
          message: 'A machine does no I/O: let the host provide it.',
        })),
      ],
      'no-restricted-properties': ['error', { object: 'Math', property: 'random', message: 'Ids come in as input.' }],
    },
  },
  {
    name: 'tests: short cuts that only a test may take',
    files: ['{test,scripts}/**/*.ts'],
    rules: {
      '@typescript-eslint/no-empty-function': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    name: 'tests: other tests share the modules of a file that is not isolated',
    files: ['test/**/*.test.ts'],
    ignores: ['test/**/*.isolated.test.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        ...['mock', 'doMock', 'resetModules'].map((property) => ({
          object: 'vi',
          property,
          message: 'Name the file *.isolated.test.ts: it gets modules of its own.',
        })),
      ],
    },
  },
  {
    name: "examples: node's own test runner awaits its tests itself",
    files: ['docs/examples/testing/*.ts'],
    rules: {
      '@typescript-eslint/no-floating-promises': [
        'error',
        { allowForKnownSafeCalls: [{ from: 'package', package: 'node:test', name: 'test' }] },
      ],
    },
  },
  {
    name: 'configuration files',
    files: ['*.{js,mjs,cjs}', '.*.{js,mjs,cjs}', '**/*.config.{ts,mjs}', 'docs/.vitepress/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', noEnum, noLiteralSpread] },
  },
  {
    name: 'programs that examples and tests start',
    files: ['{docs,test,scripts}/**/*.mjs'],
    // TypeScript does not read them, so the rule must know Node's globals.
    languageOptions: {
      globals: Object.fromEntries(
        ['console', 'performance', 'process', 'Buffer', ...timers].map((name) => [name, 'readonly']),
      ),
    },
  },
  { files: ['**/*.{js,mjs,cjs}'], extends: [tseslint.configs.disableTypeChecked] },
)
