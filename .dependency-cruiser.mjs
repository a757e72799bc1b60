// Who may import whom. `npm run boundaries` checks it; type-only imports count as well.

// A place may import itself, the places of the lines above its own, and the files that everyone may use. `features/tool` stands for the files
// `src/features/*/tool.ts`, and so do the other surfaces. A surface and the features know each other: each feature uses the types of the surface, and
// the list of the surface names each feature (`besides`).
const layers = [
  ['protocol'],
  ['isolation', 'server/http', 'features/telemetry'],
  ['store'],
  ['engine', 'store/postgres'],
  ['async-tasks', 'features', 'runners', 'command-tasks/instances'],
  ['command-tasks'],
  ['tools', 'features/tool', 'server/backend'],
  ['runners/acp', 'tools/adapters', 'host/commands', 'features/command', 'store/locations'],
  ['host', 'server', 'mcp', 'features/mcp', 'bullmq'],
  ['page', 'features/page'],
  ['cli', 'features/cli'],
]
// What `agent-tasks`, `agent-tasks/tools` and `agent-tasks/machines` load.
const coreFolders = [
  'data',
  'protocol',
  'isolation',
  'engine',
  'async-tasks',
  'features',
  'runners',
  'command-tasks',
  'tools',
  'host',
]
// The version is read from the manifest, which only Node can do: the core does without it.
const mayUseVersion = ['runners/acp', 'command-tasks/instances', 'server', 'mcp', 'page', 'cli']
const version = '^src/system/version[.]ts$'
const everyoneMayUse = ['^src/error(s|-codes)[.]ts$', '^src/data/', '^src/system/(?!version[.])']
// The command line speaks to a server as any program elsewhere does.
const besides = {
  cli: ['client', 'observability/inspect', 'features/cli'],
  'features/cli': ['cli'],
  'async-tasks': ['features'],
  features: ['async-tasks'],
  tools: ['features/tool'],
  'features/tool': ['tools'],
  'host/commands': ['features/command'],
  'features/command': ['host/commands'],
  page: ['features/page'],
  'features/page': ['page'],
  mcp: ['features/mcp'],
  'features/mcp': ['mcp'],
}
/** It is part of the build, beside what it builds. */
const viteConfig = '/vite[.]config[.]ts$'
const ours = '^(src|machines|test|docs|scripts)/'
const surfaces = ['tool', 'command', 'page', 'mcp', 'telemetry', 'cli']
const places = [
  ...layers.flat(),
  'client',
  'client/extension',
  'observability/inspect',
  'observability/telemetry',
  'testing',
]

/** The files of a place, without those of the places inside it. */
function folder(name) {
  const surface = /^features[/](.+)/.exec(name)?.[1]
  if (surface !== undefined) return `^src/features/[^/]+/${surface}[.]ts$`
  if (name === 'features') return `^src/features/([^/]+[.]ts$|[^/]+/(?!(${surfaces.join('|')})[.]ts$))`
  const inside = places.flatMap((place) => (place.startsWith(`${name}/`) ? place.slice(name.length + 1) : []))
  return inside.length === 0 ? `^src/${name}/` : `^src/${name}/(?!(${inside.join('|')})/)`
}

const layerRules = layers.flatMap((names, level) =>
  names.map((name) => {
    const below = layers.slice(0, level).flat()
    return {
      name: `layer-${name.replaceAll('/', '-')}`,
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
  ws: ['server', 'client', 'observability/inspect'],
  '@modelcontextprotocol/client': ['command-tasks/instances'],
  '@modelcontextprotocol/(server|node)': ['mcp'],
  '@statelyai/inspect': ['observability/inspect'],
  '@opentelemetry/[^/]+': ['observability/telemetry'],
  'fast-check': ['testing'],
  '(bullmq|ioredis)': ['bullmq'],
  pg: ['store/postgres'],
  re2js: ['features'],
  '@agentclientprotocol/sdk': ['runners/acp'],
  '(preact|@preact/[^/]+)': ['page/app'],
  '(commander|chalk|log-update|string-argv|@bomb.sh/tab)': ['cli', 'features/cli'],
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
    comment: `Only src/tools/adapters/${name}.ts may import it.`,
    severity: 'error',
    from: { path: '^(src|machines)/', pathNot: `^src/tools/adapters/${name}[.]ts$` },
    to: { path: packages.map((dependency) => `^node_modules/${dependency}/`) },
  })),
  {
    name: 'adapters-are-independent',
    comment: 'An adapter that imported another one would load its SDK.',
    severity: 'error',
    from: { path: '^src/tools/adapters/' },
    to: { path: adapters.map((name) => `^src/tools/adapters/${name}[.]ts$`) },
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
      comment: 'A reader of messages need not load a statechart. The tables of statuses and of fields import nothing.',
      severity: 'error',
      from: { path: '^src/protocol/' },
      to: {
        path: '^machines/',
        pathNot: ['^machines/(task-status|record-fields)[.]ts$'],
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'client-needs-only-protocol-and-isolation',
      severity: 'error',
      from: { path: folder('client') },
      to: { path: ours, pathNot: [folder('client'), '^src/protocol/', '^src/isolation/', ...everyoneMayUse] },
    },
    {
      name: 'telemetry-needs-only-protocol',
      comment: 'And what features say about their metrics.',
      severity: 'error',
      from: { path: '^src/observability/telemetry/' },
      to: {
        path: ours,
        pathNot: [
          '^src/observability/telemetry/',
          folder('features/telemetry'),
          '^src/protocol/',
          '^machines/',
          version,
          ...everyoneMayUse,
        ],
      },
    },
    ...['observability/inspect', 'testing', 'observability/telemetry'].map((name) => ({
      name: `nobody-imports-${name.replace(/.*[/]/, '')}`,
      comment: 'It shows or tests the rest, and the rest does without it.',
      severity: 'error',
      from: {
        path: '^(src|machines)/',
        pathNot: [folder(name), ...(name === 'observability/inspect' ? [folder('cli')] : [])],
      },
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
      from: { path: '^src/(index|parts)[.]ts$' },
      to: {
        path: [
          '^src/(server|mcp|cli|client|tools/adapters|observability|testing|bullmq|store/(locations|postgres)|runners/acp)/',
          version,
        ],
      },
    },
    {
      name: 'core-loads-in-a-browser',
      comment:
        "It asks src/system/node-builtins.ts for Node's own modules when it needs one; their types may be imported.",
      severity: 'error',
      from: {
        path: [
          '^machines/',
          ...everyoneMayUse,
          ...[...coreFolders, 'client', 'tools/adapters', 'observability/inspect'].map(folder),
        ],
        // The other files of hooks are loaded by its mcp.ts and cli.ts, and by the command line.
        pathNot: ['^src/features/hooks/(?!hook-deliveries[.]ts$)'],
      },
      to: { dependencyTypes: ['core'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'nobody-imports-the-entry',
      comment: 'Inside, import the file that defines the name.',
      severity: 'error',
      from: { path: '^(src|machines)/' },
      to: { path: '^src/(index|parts)[.]ts$' },
    },
    {
      name: 'a-folder-has-a-place',
      comment: 'A new folder or root file in src/ needs a place in .dependency-cruiser.mjs first.',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: places.map(folder).concat('^src/(index|parts)[.]ts$', everyoneMayUse, version),
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
          '^src/(page/wire|data/control-characters|data/omit-undefined)[.]ts$',
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
      comment: 'src/client/extension runs in a browser, as a worker like any other.',
      severity: 'error',
      from: { path: '^src/client/extension/', pathNot: viteConfig },
      to: {
        pathNot: [
          '^src/client/extension/',
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
      from: { path: '^(src|machines)/', pathNot: '^src/client/extension/' },
      to: { path: '^src/client/extension/' },
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
