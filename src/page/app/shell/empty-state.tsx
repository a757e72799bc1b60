/** What a part shows when it is empty: what to do next, with a command to copy. */
import type { ComponentChildren } from 'preact'
import { CopyButton } from './copy-button.js'

interface Props {
  readonly title: string
  readonly children?: ComponentChildren
  readonly command?: string
}

export function EmptyState({ title, children, command }: Props) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children !== undefined && <p>{children}</p>}
      {command !== undefined && (
        <div class="command">
          <pre>
            <code>{command}</code>
          </pre>
          <CopyButton text={command} label="Copy" />
        </div>
      )}
    </div>
  )
}
