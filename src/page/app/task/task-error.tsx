/** The error of a failed task, with its cause. */
import type { PageTaskDetail } from '../../wire.js'
import { ValueView } from '../text/value-view.js'
import { visible } from '../text/visible.js'

interface Props {
  readonly error: NonNullable<PageTaskDetail['error']>
  readonly valuePath: (name: string) => string
}

export function TaskError({ error, valuePath }: Props) {
  const { message, name, code, cause } = error
  return (
    <div class="task-error">
      {(name ?? code) !== undefined && (
        <p class="error-name">{visible([name, code].filter((part) => part !== undefined).join(' · '))}</p>
      )}
      <ValueView value={message} path={valuePath('error')} label="Error" />
      {cause && (
        <details>
          <summary>Cause</summary>
          <ValueView value={cause} path={valuePath('cause')} label="Cause" />
        </details>
      )}
    </div>
  )
}
