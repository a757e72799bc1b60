// `npm run test:e2e`: whole processes and real sockets. One file at a time, so that they do not fight over the machine.
import { defineConfig } from 'vitest/config'
import { sourceAliases } from './test/support/source-aliases.js'

export default defineConfig({
  resolve: { alias: sourceAliases() },
  test: {
    include: ['test/e2e/**/*.test.ts'],
    dangerouslyIgnoreUnhandledErrors: false,
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
