%{indent}// %{step} [%{id}]
%{text}
