/**
 * `npm run test:xstate`: runs the tests with the oldest and the newest version of XState that package.json allows, or with the versions that you name:
 * `npm run test:xstate -- 5.28.0 5.33.3`.
 */
import { allowedRange, testVersions } from './package-versions.js'

testVersions({
  name: 'xstate',
  range: allowedRange('dependencies', 'xstate'),
  command: ['test', '--silent'],
})
