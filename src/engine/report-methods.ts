/** The methods of a run's context that set a field of the record. */
import { RECORD_FIELDS, REPORTED_FIELDS, type ReportedField, type ReportMethod } from '../../machines/record-fields.js'
import type { RunContext } from './runner.js'

type Methods = Pick<RunContext, ReportMethod>

/** Returns the methods. Each passes its argument on as the value of its field. */
export function reportMethods(report: (field: ReportedField, value: unknown) => void): Methods {
  const methods: Partial<Record<ReportMethod, (value: unknown) => void>> = {}
  for (const field of REPORTED_FIELDS) methods[RECORD_FIELDS[field].method] = (value) => report(field, value)
  return methods as Methods
}
