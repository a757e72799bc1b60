/** The number of a command in the form, with buttons to move or remove the command. */
interface Props {
  readonly index: number
  readonly count: number
  readonly onMove: (by: number) => void
  readonly onRemove: () => void
}

export function DraftHead({ index, count, onMove, onRemove }: Props) {
  const which = `command ${index + 1}`
  return (
    <div class="draft-head">
      <span class="grow">Command {index + 1}</span>
      <button
        type="button"
        class="quiet up"
        title="Move up"
        aria-label={`Move ${which} up`}
        disabled={index === 0}
        onClick={() => onMove(-1)}
      >
        ↑
      </button>
      <button
        type="button"
        class="quiet down"
        title="Move down"
        aria-label={`Move ${which} down`}
        disabled={index === count - 1}
        onClick={() => onMove(1)}
      >
        ↓
      </button>
      <button type="button" class="quiet" title="Remove" aria-label={`Remove ${which}`} onClick={onRemove}>
        ✕
      </button>
    </div>
  )
}
