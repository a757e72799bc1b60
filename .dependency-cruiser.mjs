// Who may import whom. `npm run boundaries` checks it; type-only imports count as well.

// A folder may import itself, the folders of the lines above its own, and the files that everyone may use.
const layers = [
  ['json'],
  ['protocol'],
  ['callbacks', 'http', 'store'],
  ['engine', 'kernel', 'postgres'],
  ['async-tasks', 'runners', 'instances'],
  ['command-tasks'],
  ['tools', 'commands', 'task-backend'],
  ['acp'],
  ['host', 'server', 'mcp', 'adapters', 'bullmq'],
  ['page'],
  ['cli'],
]
// What `agent-tasks`, `agent-tasks/tools` and `agent-tasks/machines` load.
const coreFolders = [
  'text',
  'json',
  'protocol',
  'callbacks',
  'engine',
  'kernel',
  'async-tasks',
  'runners',
  'command-tasks',
  'tools',
  'commands',
  'host',
]
const everyoneMayUse = [
  'errors',
  'defined',
  'deprecation',
  'clock',
  'node-builtins',
  'process-identity',
  'regular-file',
  'private-file',
]
  .map((name) => `^src/${name}[.]ts$`)
  .concat('^src/text/')
// The command line speaks to a server as any program elsewhere does.
// The version is read from the manifest, which only Node can do: the core does without it.
const mayUseVersion = ['acp', 'instances', 'server', 'mcp', 'page', 'cli']
const version = '^src/version[.]ts$'
const besides = { cli: ['client', 'inspect'] }
/** It is part of the build, beside what it builds. */
const viteConfig = '/vite[.]config[.]ts$'
const ours = '^(src|machines|test|docs|scripts)/'
const folder = (name) => `^src/${name}/`

const layerRules = layers.flatMap((names, level) =>
  names.map((name) => {
    const below = layers.slice(0, level).flat()
    return {
      name: `layer-${name}`,
      comment: `src/${name} may import ${['machines', ...below].join(', ')}, and the files that everyone may use.`,
      severity: 'error',
      from: { path: folder(name) },
      to: {
        path: '^(src|machines)/',
        pathNot: [
          folder(name),
          '^machines/',
          ...[...below, ...(besides[name] ?? [])].map(folder),
          ...everyoneMayUse,
          ...(mayUseVersion.includes(name) ? [version] : []),
        ],
      },
    }
  }),
)

// A package that only some folders need is imported there and nowhere else.
const homes = {
  hono: ['server'],
  '@hono/[^/]+': ['server'],
  ws: ['server', 'client', 'inspect'],
  '@modelcontextprotocol/client': ['instances'],
  '@modelcontextprotocol/(server|node)': ['mcp'],
  '@statelyai/inspect': ['inspect'],
  '@opentelemetry/[^/]+': ['telemetry'],
  'fast-check': ['testing'],
  '(bullmq|ioredis)': ['bullmq'],
  pg: ['postgres'],
  re2js: ['async-tasks'],
  '@agentclientprotocol/sdk': ['acp'],
  '(preact|@preact/[^/]+)': ['page/app'],
  '(commander|chalk|log-update|string-argv|@bomb.sh/tab)': ['cli'],
}

const homeRules = Object.entries(homes).map(([dependency, names]) => ({
  name: `home-of-${dependency.replace(/\W+/g, '-').replace(/^-|-$/g, '')}`,
  comment: `Only ${names.map((name) => `src/${name}`).join(', ')} may import it, so that nobody else loads it.`,
  severity: 'error',
  from: { path: '^(src|machines)/', pathNot: names.map(folder) },
  to: { path: `^node_modules/${dependency}/` },
}))

// Each agent SDK is an optional peer of one adapter, and importing an adapter loads no other SDK.
const sdks = { 'ai-sdk': ['ai', '@ai-sdk/[^/]+'], 'openai-agents': ['@openai/[^/]+'], langchain: ['@langchain/[^/]+'] }
const adapters = [...Object.keys(sdks), 'json-schema']

const adapterRules = [
  ...Object.entries(sdks).map(([name, packages]) => ({
    name: `sdk-of-adapter-${name}`,
    comment: `Only src/adapters/${name}.ts may import it.`,
    severity: 'error',
    from: { path: '^(src|machines)/', pathNot: `^src/adapters/${name}[.]ts$` },
    to: { path: packages.map((dependency) => `^node_modules/${dependency}/`) },
  })),
  {
    name: 'adapters-are-independent',
    comment: 'An adapter that imported another one would load its SDK.',
    severity: 'error',
    from: { path: '^src/adapters/' },
    to: { path: adapters.map((name) => `^src/adapters/${name}[.]ts$`) },
  },
]

export default {
  forbidden: [
    ...layerRules,
    ...homeRules,
    ...adapterRules,
    {
      name: 'machines-are-pure',
      comment: 'machines/ imports itself, xstate and zod: no I/O, no Node builtin, no RxJS, nothing of src.',
      severity: 'error',
      from: { path: '^machines/' },
      to: { pathNot: ['^machines/', '^node_modules/(xstate|zod)/'] },
    },
    {
      name: 'protocol-takes-only-types-from-machines',
      comment: 'A reader of messages need not load a statechart. The table of statuses imports nothing.',
      severity: 'error',
      from: { path: '^src/protocol/' },
      to: { path: '^machines/', pathNot: ['^machines/task-status[.]ts$'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'client-needs-only-protocol-and-callbacks',
      severity: 'error',
      from: { path: '^src/client/' },
      to: { path: ours, pathNot: ['^src/client/', '^src/protocol/', '^src/callbacks/', ...everyoneMayUse] },
    },
    {
      name: 'telemetry-needs-only-protocol',
      severity: 'error',
      from: { path: '^src/telemetry/' },
      to: { path: ours, pathNot: ['^src/telemetry/', '^src/protocol/', '^machines/', version, ...everyoneMayUse] },
    },
    ...['inspect', 'testing', 'telemetry'].map((name) => ({
      name: `nobody-imports-${name}`,
      comment: 'It shows or tests the rest, and the rest does without it.',
      severity: 'error',
      from: { path: '^(src|machines)/', pathNot: [folder(name), ...(name === 'inspect' ? [folder('cli')] : [])] },
      to: { path: folder(name) },
    })),
    {
      name: 'shared-files-are-at-the-bottom',
      comment: 'What everyone may use imports nothing of ours but the other shared files.',
      severity: 'error',
      from: { path: everyoneMayUse },
      to: { path: ours, pathNot: everyoneMayUse },
    },
    {
      name: 'entry-is-the-core',
      comment: 'Importing the package must not load what only one subpath needs.',
      severity: 'error',
      from: { path: '^src/index[.]ts$' },
      to: { path: ['^src/(server|mcp|cli|client|adapters|inspect|testing|telemetry|bullmq|postgres|acp)/', version] },
    },
    {
      name: 'core-loads-in-a-browser',
      comment: "It asks src/node-builtins.ts for Node's own modules when it needs one; their types may be imported.",
      severity: 'error',
      from: {
        path: ['^machines/', '^src/[^/]+[.]ts$', ...[...coreFolders, 'client', 'adapters', 'inspect'].map(folder)],
        pathNot: version,
      },
      to: { dependencyTypes: ['core'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'nobody-imports-the-entry',
      comment: 'Inside, import the file that defines the name.',
      severity: 'error',
      from: { path: '^(src|machines)/' },
      to: { path: '^src/index[.]ts$' },
    },
    {
      name: 'a-folder-has-a-place',
      comment: 'A new folder or root file in src/ needs a place in .dependency-cruiser.mjs first.',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: [...layers.flat(), 'client', 'extension', 'inspect', 'telemetry', 'testing']
          .map(folder)
          .concat('^src/index[.]ts$', everyoneMayUse, version),
      },
      to: {},
    },
    {
      name: 'library-does-not-import-tests',
      severity: 'error',
      from: { path: '^(src|machines)/' },
      to: { path: '^(test|docs)/' },
    },
    {
      name: 'page-in-the-browser-needs-only-its-messages',
      comment:
        'src/page/app runs in a browser: of ours it may import what it exchanges with its server, and what shows control characters.',
      severity: 'error',
      from: { path: '^src/page/app/', pathNot: viteConfig },
      to: {
        pathNot: [
          '^src/page/app/',
          '^src/(page/wire|text/control-characters|defined)[.]ts$',
          '^node_modules/(preact|@preact/[^/]+|eventsource-parser)/',
          '^virtual:',
        ],
      },
    },
    {
      name: 'nobody-imports-the-page-in-the-browser',
      comment: 'Vite builds it; its server reads the files.',
      severity: 'error',
      from: { path: '^(src|machines)/', pathNot: '^src/page/app/' },
      to: { path: '^src/page/app/' },
    },
    {
      name: 'extension-needs-only-client-and-protocol',
      comment: 'src/extension runs in a browser, as a worker like any other.',
      severity: 'error',
      from: { path: '^src/extension/', pathNot: viteConfig },
      to: {
        pathNot: [
          '^src/extension/',
          '^src/(client|protocol)/',
          ...everyoneMayUse,
          '^node_modules/zod/',
          // Declarations alone.
          '^(node_modules/)?devtools-protocol',
        ],
      },
    },
    {
      name: 'nobody-imports-the-extension',
      comment: 'Vite builds it; the command line says where it is.',
      severity: 'error',
      from: { path: '^(src|machines)/', pathNot: '^src/extension/' },
      to: { path: '^src/extension/' },
    },
    {
      name: 'library-does-not-import-dev-dependencies',
      severity: 'error',
      // Vite bundles what the page imports.
      from: { path: '^(src|machines)/', pathNot: ['^src/page/app/', viteConfig] },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only', 'npm-peer', 'npm-optional'] },
    },
    {
      name: 'a-name-says-what-it-is-about',
      severity: 'error',
      from: {},
      to: { path: '/(utils?|helpers?|common|misc)([.]ts$|/)', pathNot: '^node_modules/' },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-unresolvable',
      severity: 'error',
      // Tests may name the package itself, which resolves only after a build; tsc sees to theirs.
      from: { path: '^(src|machines)/' },
      to: { couldNotResolve: true, pathNot: ['^virtual:', '^devtools-protocol$'] },
    },
  ],
  options: {
    doNotFollow: { path: ['node_modules', '^dist/'] },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}
