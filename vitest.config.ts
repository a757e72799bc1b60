// All tests, as projects. `npm test` runs `shared` and `isolated`; they and `scripts` need no build: the package's own name resolves to its sources.
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { sourceAliases } from './test/support/source-aliases.js'
import { runs } from './test/support/property.js'

/** Tests that replace modules, and so need modules of their own. The others share theirs with the tests before them: they are loaded once. */
const isolated = ['test/{unit,model}/**/*.isolated.test.ts']

/**
 * Real processes, sockets and a Redis. CI repeats a test that fails once, and reports it: its machine may be too busy for the time limits of a browser.
 * @param fileParallelism two files at a time, where they wait more than they compute
 */
const whole = (name: string, testTimeout: number, fileParallelism: boolean) => ({
  extends: true as const,
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    fileParallelism,
    maxWorkers: fileParallelism ? 2 : 1,
    testTimeout,
    hookTimeout: 60_000,
    retry: process.env['CI'] === undefined ? 0 : 1,
  },
})

/** Seeds and runs of properties; and a test fails when the code that it ran has left something behind. */
export const setupFiles = ['test/support/property-settings.ts', 'test/support/leftovers-setup.ts']
// Only what hangs is to fail: a machine may be slow. A deep run (FC_NUM_RUNS=10000) gets as much more time.
export const testTimeout = Math.max(180_000, runs * 50)

const maxWorkers = Math.ceil(availableParallelism() * 1.5)

export default defineConfig({
  resolve: { alias: sourceAliases() },
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'shared',
          include: ['test/{unit,model,race,types}/**/*.test.ts'],
          exclude: isolated,
          isolate: false,
          setupFiles,
          testTimeout,
          hookTimeout: testTimeout,
        },
      },
      {
        extends: true,
        test: { name: 'isolated', include: isolated, setupFiles, testTimeout, hookTimeout: testTimeout },
      },
      // What only checks the tools of this repository: `npm run test:scripts`, a step of `npm run verify`.
      {
        extends: true,
        test: {
          name: 'scripts',
          include: ['test/scripts/**/*.test.ts'],
          isolate: false,
          testTimeout,
          hookTimeout: testTimeout,
        },
      },
      whole('e2e', 60_000, true),
      whole('cluster', 120_000, false),
    ],
    dangerouslyIgnoreUnhandledErrors: false,
    // As testTimeout: only what hangs is to fail.
    expect: { poll: { timeout: 60_000 } },
    // Many files wait for processes and sockets.
    maxWorkers,
    // Most of what tests make is garbage at once: fewer and cheaper collections.
    execArgv: ['--max-semi-space-size=48'],
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts', 'machines/**/*.ts'],
      // What needs a browser is tested in one: test/e2e/page-*, test/e2e/extension-*. What needs a Redis is tested on one: test/cluster.
      // Worktrees are tested with whole hosts and repositories: test/e2e/worktrees.
      exclude: [
        'test/**',
        'src/page/app/**',
        'src/client/extension/options/**',
        'src/runners/worktrees/**',
        'src/cli/worktrees-command.ts',
        'src/client/extension/{attachments,background,control,controlled-tabs,no-code-from-text,storage-keys}.ts',
        'src/client/extension/tools/{element-handles,element-tools,elements,evaluate,frame-points,frames,index,input-guard,keyboard,leaving,log-tools,mouse}.ts',
        'src/client/extension/tools/{page,page-scripts,page-tools,perform,screenshot,snapshot,tab-tools,toolkit}.ts',
        'src/bullmq/{bullmq-runner,connection,host-link,start-worker}.ts',
        'src/bullmq/cluster/{bullmq-cluster,cluster-node,cluster-redis,cluster-service,hosted-tasks,instance-lane,instance-queue}.ts',
      ],
      reporter: ['text', 'html', 'json-summary'],
      skipFull: true,
      // Below what is reached: paths that only some timings take differ from run to run by some tenths.
      thresholds: { statements: 97.6, branches: 93.4, functions: 97.9, lines: 98.7 },
    },
  },
})
