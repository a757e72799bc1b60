// The default test run: everything but test/e2e. It needs no build: the package's own name resolves to its sources.
import { defineConfig } from 'vitest/config'
import { sourceAliases } from './test/support/source-aliases.js'
import { runs } from './test/support/property.js'

export default defineConfig({
  resolve: { alias: sourceAliases() },
  test: {
    include: ['test/{unit,model,race,types}/**/*.test.ts'],
    setupFiles: ['test/support/property-settings.ts', 'test/support/leftovers-setup.ts'],
    dangerouslyIgnoreUnhandledErrors: false,
    // vitest leaves one processor free by default, which on two takes nearly twice as long.
    maxWorkers: '100%',
    // Only what hangs is to fail: a machine may be slow. A deep run (FC_NUM_RUNS=10000) gets as much more time.
    testTimeout: Math.max(60_000, runs * 50),
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts', 'machines/**/*.ts'],
      // What needs a browser is tested in one: test/e2e/page-*. What needs a Redis is tested on one: test/cluster.
      exclude: [
        'test/**',
        'src/page/app/**',
        'src/bullmq/{bullmq-runner,connection,give-up-dead,host-link,remote-run,script,start-worker,worker-run}.ts',
        'src/bullmq/cluster/{bullmq-cluster,cluster-node,cluster-redis,cluster-service,feed,instance-lane,instance-queue}.ts',
      ],
      reporter: ['text', 'html', 'json-summary'],
      skipFull: true,
      // Below what is reached: paths that only some timings take differ from run to run by some tenths.
      thresholds: { statements: 97.6, branches: 93.4, functions: 97.9, lines: 98.7 },
    },
  },
})
