/** A filter by a name. It is not shown if there are too few names to choose from. */
import { visible } from '../text/visible.js'

interface Props {
  readonly label: string
  readonly value: string | undefined
  readonly options: readonly string[]
  /** Returns the text of an option. Default: the option itself. */
  readonly textOf?: (option: string) => string
  /** The minimum number of options. With fewer options, the filter is not shown. Default 2. */
  readonly least?: number
  readonly onChange: (value: string | undefined) => void
}

export function FilterSelect({ label, value, options, textOf = visible, least = 2, onChange }: Props) {
  if (options.length < least && value === undefined) return null
  const offered = value === undefined || options.includes(value) ? options : [value, ...options]
  const all = '*'
  return (
    <label>
      <span class="label">{label}</span>
      <select
        value={value === undefined ? all : `=${value}`}
        onChange={({ currentTarget }) =>
          onChange(currentTarget.value === all ? undefined : currentTarget.value.slice(1))
        }
      >
        <option value={all}>All</option>
        {offered.map((name) => (
          <option key={name} value={`=${name}`}>
            {textOf(name)}
          </option>
        ))}
      </select>
    </label>
  )
}
