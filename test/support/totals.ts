/**
 * Adds up the JSON reports of vitest whose files are the arguments. Prints one line: `N passed, N failed`, and `, N skipped` if there are any. A missing
 * report counts as empty, because its run did not start.
 */
import { existsSync, readFileSync } from 'node:fs'

type Report = {
  numPassedTests: number
  numFailedTests: number
  numPendingTests: number
  numTodoTests: number
  testResults: { status: string; assertionResults: { status: string }[] }[]
}

const totals = { passed: 0, failed: 0, skipped: 0 }
for (const file of process.argv.slice(2).filter((name) => existsSync(name))) {
  const report = JSON.parse(readFileSync(file, 'utf8')) as Report
  // Files that do not load. They have no failed test, so they are counted separately.
  const brokenFiles = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((assertion) => assertion.status === 'failed'),
  )
  totals.passed += report.numPassedTests
  totals.failed += report.numFailedTests + brokenFiles.length
  totals.skipped += report.numPendingTests + report.numTodoTests
}

const skipped = totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''
console.log(`${totals.passed} passed, ${totals.failed} failed${skipped}`)
