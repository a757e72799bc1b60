/**
 * `npm run test:xstate`: runs the tests with the oldest and the newest version of XState that package.json allows, or with the versions that you name:
 * `npm run test:xstate -- 5.28.0 5.33.3`.
 *
 * It leaves out the tests of the tools in test/support, because these tools are written for the installed version.
 */
import { allowedRange, testVersions } from './package-versions.js'

testVersions({
  name: 'xstate',
  range: allowedRange('dependencies', 'xstate'),
  command: ['test', '--silent', '--', '--exclude', 'test/unit/support/**'],
})
