/**
 * Adds up the JSON reports of vitest whose files are the arguments. Prints what failed, then one line: `N passed, N failed`, and `, N skipped` if there are
 * any. A missing report counts as empty, because its run did not start.
 */
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

type Report = {
  numPassedTests: number
  numFailedTests: number
  numPendingTests: number
  numTodoTests: number
  testResults: {
    name: string
    message: string
    status: string
    assertionResults: { status: string; fullName: string; failureMessages?: string[] }[]
  }[]
}

const totals = { passed: 0, failed: 0, skipped: 0 }
for (const file of process.argv.slice(2).filter((name) => existsSync(name))) {
  const report = JSON.parse(readFileSync(file, 'utf8')) as Report
  // Files that do not load. They have no failed test, so they are counted separately.
  const brokenFiles = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((assertion) => assertion.status === 'failed'),
  )
  for (const { name, message } of brokenFiles) printFailure(name, 'does not load', [message])
  for (const { name, assertionResults } of report.testResults) {
    for (const { status, fullName, failureMessages } of assertionResults) {
      if (status === 'failed') printFailure(name, fullName, failureMessages)
    }
  }
  totals.passed += report.numPassedTests
  totals.failed += report.numFailedTests + brokenFiles.length
  totals.skipped += report.numPendingTests + report.numTodoTests
}

const skipped = totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''
console.log(`${totals.passed} passed, ${totals.failed} failed${skipped}`)

/** The end of a long output is often all that is kept of it: there, a failure is named again, with the start of its reason. */
function printFailure(file: string, test: string, messages: string[] = []) {
  console.log(`FAILED ${path.relative('.', file)}: ${test}`)
  for (const message of messages) console.log(message.split('\n').slice(0, 12).join('\n').slice(0, 1500))
}
