/**
 * `npm run test:bullmq`: runs the tests that depend on BullMQ's keys and API. It uses the oldest and the newest version of BullMQ that package.json
 * allows, or the versions that you name: `npm run test:bullmq -- 6.5.4`. It needs a `redis-server`.
 */
import { allowedRange, testVersions } from './package-versions.js'

testVersions({
  name: 'bullmq',
  range: allowedRange('peerDependencies', 'bullmq'),
  command: [
    ...['run', '--silent', 'test:cluster', '--'],
    ...['bullmq-layout', 'engine-contract', 'lane-contract', 'fences', 'returns', 'hints', 'runs.test'],
  ],
  advice:
    'What this package knows of the keys of BullMQ is in src/bullmq/bullmq-layout.ts: where test/cluster/bullmq-layout.test.ts fails, change that file.',
})
